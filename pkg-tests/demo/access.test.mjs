import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser } from "./browser.mjs";

let browser;
before(async () => {
  browser = await Browser.open();
});
after(() => browser.close());

test("the keyboard reaches every button, shows where it is and presses it", async (t) => {
  const shown = await browser.page(t);
  const names = ["Send one", "Burst of 10", "Send one", "Burst of 10", "Send twice", "Clear"];
  for (const name of names) {
    await shown.page.keyboard.press("Tab");
    const focused = await shown.page
      .locator(":focus-visible")
      .evaluate((element) => [element.textContent, getComputedStyle(element).outlineStyle]);
    assert.deepEqual(focused, [name, "solid"]);
  }
  await shown.button("chat", "Send one").press("Enter");
  await shown.logged("chat", "1 accepted");
  await shown.button("order", "Send one").press("Space");
  await shown.logged("order", "1 accepted");
  await shown.page.getByRole("button", { name: "Clear" }).press("Enter");
  await shown.page.getByText("Send something").waitFor();
});

test("at phone width nothing is wider than the page", async (t) => {
  const shown = await browser.page(t);
  await shown.page.setViewportSize({ width: 360, height: 740 });
  await shown.button("chat", "Burst").click();
  await shown.logged("chat", "refused");
  await shown.button("order", "Send twice").click();
  await shown.logged("order", "1 duplicate");
  const width = await shown.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${width}`);
});

test("where motion is unwelcome, buckets fall by whole units and waits by whole seconds", async (t) => {
  const shown = await browser.page(t);
  await shown.page.emulateMedia({ reducedMotion: "reduce" });
  await shown.button("chat", "Burst").click();
  await shown
    .card("chat")
    .getByText(/the same message fits in \d\ss/)
    .waitFor();
  await shown
    .card("chat")
    .getByText(/One leaks out in \d\ss/)
    .waitFor();
  const vessel = shown.card("chat").locator(".vessel");
  const level = await vessel.evaluate((element) => element.style.getPropertyValue("--level"));
  assert.match(level, /^\d$/);
  await shown.button("order", "Burst").click();
  await shown
    .card("order")
    .getByText(/the same message fits in \d+\ss/)
    .waitFor();
});
