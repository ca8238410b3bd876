/** The deepest nesting of a request body: far above real requests, far below where parsing gets costly. */
export const maxJsonDepth = 64;

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Whether JSON text is nested deeper than `maxJsonDepth`; scans its bytes without parsing them. */
export function isTooDeep(bytes: Uint8Array): boolean {
  const { length } = bytes;
  let depth = 0;
  for (let index = 0; index < length; index++) {
    const byte = bytes[index];
    if (byte === quote) {
      // Most of a body is text: this inner loop passes over it with two comparisons a byte.
      for (index++; index < length && bytes[index] !== quote; index++)
        if (bytes[index] === backslash) index++;
    } else if (byte === openBrace || byte === openBracket) {
      if (++depth > maxJsonDepth) return true;
    } else if (byte === closeBrace || byte === closeBracket) depth--;
  }
  return false;
}
