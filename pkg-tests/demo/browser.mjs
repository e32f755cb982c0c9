// The demo in a browser, as a person sees it.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { rules } from "../../js/demo/rules.mjs";
import { findChromium } from "../../js/tools/setup.mjs";
import { Demo } from "./demo.mjs";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export class Browser {
  #demo;
  #chromium;

  static async open(args) {
    const browser = new Browser();
    [browser.#demo, browser.#chromium] = await Promise.all([
      Demo.listening(args),
      chromium.launch({ executablePath: findChromium(), args: flags }),
    ]);
    return browser;
  }

  /** A page of a guest of its own, on a clock that can be put forward. It may neither complain nor look elsewhere. */
  async page(test) {
    const url = await this.#demo.url();
    const page = await this.#chromium.newPage();
    const complaints = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.stack));
    page.on("request", (request) => {
      if (!request.url().startsWith(`${url}/`)) complaints.push(request.url());
    });
    test.after(async () => {
      await page.close();
      assert.deepEqual(complaints, []);
    });
    await page.clock.install();
    await page.goto(url);
    await page.getByText("Connected", { exact: true }).waitFor();
    return new Shown(page);
  }

  close() {
    return Promise.all([this.#chromium.close(), this.#demo.end("SIGTERM")]);
  }
}

/** What is on a page. */
class Shown {
  constructor(page) {
    this.page = page;
  }

  card(event) {
    return this.page.getByRole("region", { name: event });
  }

  button(event, name) {
    return this.card(event).getByRole("button", { name });
  }

  /** Waits until the card says that so much is left. */
  left(event, count) {
    return this.card(event).getByText(`${count} of ${rules[event].limit.limit} left`).waitFor();
  }

  /** Waits until the newest entry of the log says all this. */
  logged(...texts) {
    const newest = this.page.getByRole("log").getByRole("listitem").first();
    return texts.reduce((entry, hasText) => entry.filter({ hasText }), newest).waitFor();
  }
}
