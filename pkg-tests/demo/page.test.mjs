import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rules } from "../../js/demo/rules.mjs";
import { Browser } from "./browser.mjs";

const BURST = 10;

let browser;
before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test("shows the limits of the table, and buckets that are whole", async (t) => {
  const shown = await browser.page(t);
  for (const [event, { limit }] of Object.entries(rules)) {
    await shown.left(event, limit.limit);
    const meter = shown.card(event).getByRole("meter", { name: event });
    assert.deepEqual(await meter.evaluate(({ value, max }) => [value, max]), [0, limit.limit]);
  }
  await shown.card("chat").getByText("holds 5, leaks one per 2 s").waitFor();
  await shown.card("order").getByText("5 per 15 s").waitFor();
});

test("a single message takes from its bucket, and the end of the window gives it back", async (t) => {
  const shown = await browser.page(t);
  const { limit, window } = rules.order.limit;
  await shown.button("order", "Send one").click();
  await shown.logged("order", "1 accepted", '"ok":true');
  await shown.left("order", limit - 1);
  await shown.card("order").getByText("The window ends in").waitFor();
  await shown.page.clock.fastForward(window);
  await shown.left("order", limit);
});

test("a burst fills a leaky bucket, and time drains it", async (t) => {
  const shown = await browser.page(t);
  const { limit, window } = rules.chat.limit;
  await shown.button("chat", "Burst").click();
  await shown.logged("chat", "accepted", "refused", "RATE_LIMITED");
  await shown.card("chat").getByText("One leaks out in").waitFor();
  await shown.page.clock.fastForward(window);
  await shown.card("chat").getByText("The bucket is empty").waitFor();
  await shown.left("chat", limit);
});

test("a burst is refused beyond the limit, the wait runs down, and a reload forgets nothing", async (t) => {
  const shown = await browser.page(t);
  const { limit, window } = rules.order.limit;
  await shown.button("order", "Burst").click();
  const refused = `${BURST - limit} refused`;
  await shown.logged("order", `${limit} accepted`, refused, "RATE_LIMITED", /fits in \d+\.\d\ss/);
  await shown
    .card("order")
    .getByText(/the same message fits in \d+\.\d\ss/)
    .waitFor();
  await shown.left("order", 0);
  await shown.page.clock.fastForward(window);
  await shown.card("order").getByText("the same message fits now").waitFor();
  await shown.logged("fits now");
  await shown.left("order", limit);
  // The page's clock was put forward, not the server's.
  await shown.page.reload();
  await shown.left("order", 0);
});

test("a message delivered twice and one whose id is repeated are marked as duplicates", async (t) => {
  const shown = await browser.page(t);
  assert.ok(await shown.button("order", "Repeat id").isDisabled());
  await shown.button("order", "Send twice").click();
  await shown.logged("order", "delivered twice", "1 accepted", "1 duplicate");
  await shown.button("order", "Repeat id").click();
  await shown.logged("order", "again", "1 duplicate");
  await shown.card("order").getByText("Handled once").waitFor();
  const counts = await shown.card("order").getByRole("definition").allTextContents();
  assert.deepEqual(counts, ["1", "0", "2"]);
});
