/** How deep a request may be nested: far deeper than any real one, far from where parsers overflow. */
export const maxJsonDepth = 64;

const quote = 0x22;
const backslash = 0x5c;
const openers = new Set([0x5b, 0x7b]);
const closers = new Set([0x5d, 0x7d]);

/** Whether JSON text is nested deeper than `maxJsonDepth`, told from its bytes before anything is parsed. */
export function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0;
    if (inString) {
      if (byte === backslash) index++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (openers.has(byte)) depth++;
    else if (closers.has(byte)) depth--;
    if (depth > maxJsonDepth) return true;
  }
  return false;
}
