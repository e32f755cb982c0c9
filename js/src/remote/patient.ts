import type { Driver } from "../store.js";
import type { Requests } from "./requests.js";

/** The driver, for whose users requests are given as long as they wait. */
export function patient(driver: Driver, requests: Requests): Driver {
  const told = (timeoutMs: number): Driver => {
    requests.waits(timeoutMs);
    return driver;
  };
  return {
    limits: (prefix, limits, timeoutMs) => told(timeoutMs).limits(prefix, limits, timeoutMs),
    messages: (prefix, timeoutMs) => told(timeoutMs).messages(prefix, timeoutMs),
    bursts: (prefix, timeoutMs) => told(timeoutMs).bursts(prefix, timeoutMs),
  };
}
