/** Waits, without keeping the process from ending. */
export function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    const timer: NodeJS.Timeout = setTimeout(resolve, ms, undefined);
    timer.unref();
  });
}
