// The demo as a process of its own, as npm start runs it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { root } from "../../js/tools/shell.mjs";

const server = join(root, "js/demo/server.mjs");

export class Demo {
  output = "";
  #child;
  #ended;

  constructor(args, env = {}) {
    const { PORT, ...rest } = process.env;
    this.#child = spawn(process.execPath, [server, ...args], { env: { ...rest, ...env } });
    this.#ended = once(this.#child, "close");
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on("data", (chunk) => {
        this.output += chunk;
      });
    }
  }

  get pid() {
    return this.#child.pid;
  }

  /** A demo that listens on a free port. */
  static async listening(args = []) {
    const demo = new Demo(["--port", "0", ...args]);
    await demo.url();
    return demo;
  }

  /** Where it says that it listens. */
  async url() {
    for (;;) {
      const said = /^tidegate demo: (http:\S+)$/m.exec(this.output);
      if (said) return said[1];
      if (this.#child.exitCode !== null) throw new Error(`It ended: ${this.output}`);
      await Promise.race([once(this.#child.stdout, "data"), this.#ended]);
    }
  }

  /** The exit code, once it has ended; of a signal that killed it, its name. */
  async end(signal) {
    if (signal) this.#child.kill(signal);
    const [code, killedBy] = await this.#ended;
    return code ?? killedBy;
  }
}
