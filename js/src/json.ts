const BEYOND_ASCII = /[\u007f-\uffff]/g;

/** JSON as a store keeps it: in ASCII. */
export function asciiJson(json: string): string {
  return json.replace(BEYOND_ASCII, escaped);
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
