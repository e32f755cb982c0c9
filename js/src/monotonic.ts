/** Monotonic, so that an adjusted wall clock moves no window; its epoch is the wall clock's at the start. */
const origin = Math.floor(performance.timeOrigin);
let wallTick = Number.NaN;
let monotonicTick = origin;

/**
 * Milliseconds that never step back. The wall clock is the faster one to read: as long as it shows the same
 * millisecond, so does this one. Whatever it jumps to, the time itself is only ever the monotonic clock's.
 */
export function monotonicNow(): number {
  const wall = Date.now();
  if (wall !== wallTick) {
    wallTick = wall;
    monotonicTick = Math.floor(origin + performance.now());
  }
  return monotonicTick;
}
