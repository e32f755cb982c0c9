/** Sees to it that a value of a module is let go once its owner is gone. Where the runtime tells of none, it stays. */
export function freedBy(
  free: (number: number) => void,
): Pick<FinalizationRegistry<number>, "register" | "unregister"> {
  if (typeof FinalizationRegistry === "undefined") {
    return { register: () => {}, unregister: () => false };
  }
  return new FinalizationRegistry(free);
}
