import { EventEmitter } from "node:events";
import { types } from "node:util";
import type { Delivery } from "./delivery.js";
import type { Done, Socket } from "./server.js";

type Listener = (...args: unknown[]) => unknown;

/** What Socket.IO does with a packet that nobody refused: to the catch-all listeners, then through the middlewares. */
export function proceed(this: Socket, event: unknown[], dispatch: Done): void {
  const listeners = this.listenersAny();
  if (listeners.length > 0) for (const listener of [...listeners]) listener.apply(this, event);
  Object.getPrototypeOf(this).run.call(this, event, dispatch);
}

/**
 * Calls the listeners of an event as an emitter does, and sees when they fail: the delivery has failed once each of
 * them has. Whoever throws at once is the caller's to catch.
 */
export function callListeners(socket: Socket, event: unknown[], delivery: Delivery): void {
  // Where a rejection is an "error" event, the emitter has to see it.
  if (EventEmitter.captureRejections) {
    EventEmitter.prototype.emit.apply(socket, event as [string, ...unknown[]]);
    return;
  }
  const args = event.slice(1);
  const listeners = socket.rawListeners(event[0] as string);
  let running = listeners.length;
  for (const listener of listeners) {
    const answer = listener.apply(socket, args);
    if (delivery.isOver || !isAsync(listener)) continue;
    (answer as Promise<unknown>).then(undefined, (error) => {
      running -= 1;
      if (running === 0) delivery.fail();
      throw error;
    });
  }
}

/**
 * An async function's promise is nobody else's: who looks at it and throws what it is rejected with again leaves it as
 * unhandled as it was. Any other promise may have been taken care of.
 */
function isAsync(listener: Listener & { listener?: Listener }): boolean {
  // What `once` puts in its place has it as a member.
  return types.isAsyncFunction(listener.listener ?? listener);
}
