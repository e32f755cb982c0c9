import { type Answer, errorOf, resultOf } from "./answer.js";
import type { Endpoint } from "./endpoint.js";

/** One command on its way to the server, as JSON. */
interface Call {
  readonly json: string;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** The most that one request carries, unless a single command is longer: servers refuse a megabyte, or ten. */
const MOST_CHARACTERS = 512 * 1024;

/**
 * Sends the commands of one tick in one request: requests go their own ways and may overtake each other,
 * while the commands of one are run in order.
 */
export class Commands {
  readonly #endpoint: Endpoint;
  #waiting: Call[] = [];

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** The command's result, as the server's JSON has it; its error is thrown. */
  async run(command: string[]): Promise<unknown> {
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#waiting.push({ json: JSON.stringify(command), resolve, reject });
      if (this.#waiting.length === 1) queueMicrotask(this.#flush);
    });
    return resultOf(await answer);
  }

  #flush = (): void => {
    const calls = this.#waiting;
    this.#waiting = [];
    for (const request of requests(calls)) void this.#send(request);
  };

  /** What fails a request fails each of its commands. */
  async #send(calls: Call[]): Promise<void> {
    try {
      const answers = await this.#ask(calls);
      for (const [at, call] of calls.entries()) call.resolve(answers[at] as Answer);
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
  }

  async #ask(calls: Call[]): Promise<Answer[]> {
    const commands = calls.map(({ json }) => json);
    if (commands.length === 1) return [await this.#endpoint.post("", commands[0] as string)];
    const { status, body } = await this.#endpoint.post("/pipeline", `[${commands.join()}]`);
    if (!Array.isArray(body) || body.length !== calls.length) throw errorOf({ status, body });
    return body.map((one) => ({ status, body: one }));
  }
}

/** Calls in order, parted where one request would become too long. */
function requests(calls: Call[]): Call[][] {
  const parted: Call[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const call of calls) {
    length += call.json.length;
    if (length > MOST_CHARACTERS) {
      parted.push([]);
      length = call.json.length;
    }
    parted.at(-1)?.push(call);
  }
  return parted;
}
