/** JSON as a store keeps it: in ASCII. */
export function asciiJson(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(/[\u007f-\uffff]/g, escaped);
}
