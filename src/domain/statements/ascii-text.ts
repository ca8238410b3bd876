/**
 * Writes a text as a JSON string of printable ASCII: it has no line feed in it, and the same bytes in every encoding that a
 * file may be opened with.
 */
export function asciiText(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
