import { Bucket } from "./bucket.js";
import { ahead, countdown, describe, say, tally } from "./words.js";

const remarks = {
  accepted: () => "The handler ran and answered.",
  refused: ({ ack, at }, now, smooth) =>
    `${ack.error.code}: the same message fits ${countdown(at + ack.error.retryAfterMs - now, smooth)}.`,
  duplicate: () => "Handled once: the duplicate got the first answer.",
  lost: () => "No answer came. Is the server still running?",
};

/** One event behind the gateway: its bucket, its buttons, and how its messages fared. */
export class Card {
  #bucket;
  #parts;
  #last;

  /** `press(event, action)` is called for each press of a button. */
  constructor(event, rule, press) {
    this.element = document.getElementById("card").content.firstElementChild.cloneNode(true);
    this.#bucket = new Bucket(rule.limit);
    const find = (selector) => this.element.querySelector(selector);
    this.#parts = {
      vessel: find(".vessel"),
      meter: find("meter"),
      left: find(".left strong"),
      ahead: find(".ahead"),
      verdict: find(".verdict"),
      summary: find(".verdict strong"),
      remark: find(".verdict span"),
      repeat: find("[data-action=repeat]"),
    };

    const { limit } = rule.limit;
    const title = find("h2");
    title.id = `${event}-title`;
    title.textContent = event;
    for (const labelled of [this.element, this.#parts.meter, find("fieldset")]) {
      labelled.setAttribute("aria-labelledby", title.id);
    }
    this.element.dataset.event = event;
    find(".rule").textContent = describe(rule);
    find(".left span").textContent = `of ${limit} left`;
    this.#parts.meter.max = limit;
    this.#parts.vessel.style.setProperty("--limit", limit);

    for (const part of this.element.querySelectorAll("[data-dedup]")) part.hidden = !rule.dedup;
    for (const button of this.element.querySelectorAll("[data-action]")) {
      button.addEventListener("click", () => press(event, button.dataset.action));
    }
  }

  /** What the gateway decided last. */
  decided(decision, now) {
    this.#bucket.decided(decision, now);
  }

  /** The answers to one press: the last of them is commented on. */
  answered(groups) {
    for (const [kind, answers] of groups) {
      const count = this.element.querySelector(`[data-count=${kind}]`);
      if (count) count.textContent = Number(count.textContent) + answers.length;
    }
    if (groups.has("accepted")) this.#parts.repeat.disabled = false;
    this.#last = [...groups.values()].at(-1).at(-1);
    this.#parts.verdict.dataset.kind = this.#last.kind;
    this.#parts.summary.textContent = `${tally(groups)}.`;
  }

  /** Draws the state at `now`, in steps unless `smooth`. Answers whether time alone will change it. */
  tick(now, smooth) {
    const { vessel, meter, left, ahead: outlook, remark } = this.#parts;
    const level = this.#bucket.level(now);
    const used = Math.ceil(level);
    vessel.style.setProperty("--level", smooth ? level : used);
    outlook.style.setProperty(
      "--wait",
      smooth ? this.#bucket.nextIn(now) / this.#bucket.periodMs : 0,
    );
    meter.value = used;
    say(meter, `${used} of ${this.#bucket.limit} used`);
    say(left, this.#bucket.limit - used);
    say(outlook, ahead(this.#bucket, now, smooth));
    if (this.#last) say(remark, remarks[this.#last.kind](this.#last, now, smooth));
    return level > 0;
  }
}
