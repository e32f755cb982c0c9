const SIGNAL = "SIGTERM";

/** What has to be done before the process ends. */
const wishes = new Set<() => Promise<void>>();

/**
 * Sees to it that on SIGTERM this is done before the process ends as it would have. Who listens for the signal
 * too decides when that is; where nobody does, it is as soon as everything is done.
 *
 * @returns the function that takes it back.
 */
export function beforeTermination(wish: () => Promise<void>): () => void {
  // In front of the others: a listener that was meant for one signal is still counted then.
  if (wishes.size === 0) process.prependListener(SIGNAL, terminate);
  wishes.add(wish);
  return () => {
    if (wishes.delete(wish) && wishes.size === 0) process.off(SIGNAL, terminate);
  };
}

async function terminate(): Promise<void> {
  const isAlone = process.listenerCount(SIGNAL) === 1;
  // The next one finds nobody who holds it up.
  if (isAlone) process.off(SIGNAL, terminate);
  // One that throws at once keeps no other from being heard.
  await Promise.allSettled([...wishes].map(async (wish) => wish()));
  if (isAlone) process.kill(process.pid, SIGNAL);
}
