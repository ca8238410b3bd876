/** The deepest nesting of a request body: far above real requests, far below where parsing gets costly. */
export const maxJsonDepth = 64;

/**
 * How many entries the arrays and objects of a request body may have together, counted by their commas and brackets. Each
 * costs the parser and the contract work: a body of a mebibyte could hold 350,000, and stop all other requests meanwhile.
 * 4,096 messages with a part each have 25,000.
 */
export const maxJsonEntries = 65_536;

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const comma = 0x2c;

/**
 * How many bytes of a string without a quote are read one by one before the native search takes over. Beginning it costs
 * as much as reading about 30 bytes: text that has a quote every few bytes must not pay for a search at each of them.
 */
const nearBytes = 64;

/**
 * Which limit JSON text exceeds, `maxJsonDepth` or `maxJsonEntries`; `null` for none. Scans its bytes without parsing them.
 */
export function findExcess(bytes: Uint8Array): 'depth' | 'entries' | null {
  const { length } = bytes;
  let [depth, entries] = [0, 0];
  for (let index = 0; index < length; index++) {
    const byte = bytes[index];
    if (byte === quote) index = endOfString(bytes, index + 1);
    else if (byte === comma) entries++;
    else if (byte === openBrace || byte === openBracket) {
      if (++depth > maxJsonDepth) return 'depth';
      entries++;
    } else if (byte === closeBrace || byte === closeBracket) depth--;
    if (entries > maxJsonEntries) return 'entries';
  }
  return null;
}

/** The index of the quote that ends a string, whose text begins at `start`; or the end of the bytes. */
function endOfString(bytes: Uint8Array, start: number): number {
  const { length } = bytes;
  for (let index = start; ;) {
    let near = Math.min(length, index + nearBytes);
    for (; index < near; index++) {
      const byte = bytes[index];
      if (byte === quote) return index;
      if (byte === backslash && bytes[++index] === quote) near = Math.min(length, index + nearBytes);
    }
    const end = index < length ? bytes.indexOf(quote, index) : -1;
    if (end === -1) return length;
    if (!isEscaped(bytes, end, index)) return end;
    index = end + 1;
  }
}

/**
 * Whether a byte of a string is escaped: an odd number of backslashes is before it. `start` is not escaped, and bounds the
 * search: without it, text of nothing but backslashes would be counted again and again.
 */
function isEscaped(bytes: Uint8Array, index: number, start: number): boolean {
  let first = index;
  while (first > start && bytes[first - 1] === backslash) first--;
  return (index - first) % 2 === 1;
}
