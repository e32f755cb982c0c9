/** What a function of the user answered. A promise is no answer: the packet would pass before it is there. */
export function answered<T>(answer: T, name: string): T {
  if (!(answer instanceof Promise)) return answer;
  answer.catch(() => {});
  throw new TypeError(`${name} must answer at once, but answered a promise`);
}
