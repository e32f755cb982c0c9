// A process lives on by itself.

export const waitUntil: ((promise: Promise<unknown>) => void) | undefined = () => {};
