import { countdown, say, wait } from "./words.js";

const MAX_ENTRIES = 100;

/** What was sent and what came back, newest first. */
export class Journal {
  #hint;
  #list;
  /** Countdowns that still run: [element, when the message fits]. */
  #waits = [];

  constructor(element) {
    this.#hint = element.querySelector("p");
    this.#list = element.querySelector("ol");
    element.querySelector("button").addEventListener("click", () => this.#clear());
  }

  /** One press and its answers; those of one kind share a line, which quotes the last of them. */
  add(event, title, groups) {
    const entry = node("li");
    entry.append(
      node("time", new Date().toLocaleTimeString("en-GB")),
      node("b", event),
      node("span", title),
    );
    for (const [kind, answers] of groups) entry.append(this.#line(kind, answers));
    this.#list.prepend(entry);
    this.#list.children[MAX_ENTRIES]?.remove();
    this.#hint.hidden = true;
  }

  #line(kind, answers) {
    const { ack, at } = answers.at(-1);
    const line = node("p");
    line.dataset.kind = kind;
    line.append(node("span", `${answers.length} ${kind}`));
    if (ack) line.append(node("code", JSON.stringify(ack)));
    if (kind === "refused") {
      const { retryAfterMs } = ack.error;
      const left = node("span");
      // The line states the wait; a screen reader need not hear it run down.
      left.ariaHidden = "true";
      const note = node("em", `retry after ${wait(retryAfterMs, true)}, fits `);
      note.append(left);
      line.append(note);
      this.#waits.push([left, at + retryAfterMs]);
    }
    return line;
  }

  #clear() {
    this.#list.replaceChildren();
    this.#waits = [];
    this.#hint.hidden = false;
  }

  /** Draws the countdowns at `now`. Answers whether one still runs. */
  tick(now, smooth) {
    for (const [element, fitsAt] of this.#waits) say(element, countdown(fitsAt - now, smooth));
    this.#waits = this.#waits.filter(([, fitsAt]) => fitsAt > now);
    return this.#waits.length > 0;
  }
}

function node(tag, text = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}
