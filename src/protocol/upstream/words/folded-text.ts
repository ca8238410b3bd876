/**
 * A text reduced to its letters and digits, in lower case and without accents: what stays the same when a provider quotes
 * a text with other white space, other capitals, or escaped as JSON or HTML.
 */
export interface FoldedText {
  /** The letters and digits, as UTF-16 code units. */
  readonly units: number[];
  /** For each unit, the index of its character in the text; `null` if they are not wanted. */
  readonly origins: number[] | null;
}

/** A folded text whose units are traced back. */
export interface FoldedMessage extends FoldedText {
  readonly origins: number[];
}

/** An escaped character: its code point, `null` if it is neither letter nor digit, and the index behind it. */
interface Escape {
  readonly point: number | null;
  readonly end: number;
}

const backslash = 0x5c;
const ampersand = 0x26;

/** Escapes are at least read this far: `\u{10ffff}` and `&#x10ffff;`, in characters. */
const maxEscapeChars = 12;

const entity = /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|[a-z]{2,6});/iy;
const unicodeEscape = /(?:u([0-9a-f]{4})|x([0-9a-f]{2}))/iy;

/** Folds a text with the origins of its units. */
export function foldMessage(text: string): FoldedMessage {
  const folded = { units: [], origins: [] };
  foldText(text, folded);
  return folded;
}

/** Folds a text and appends it to `into`. */
export function foldText(text: string, into: FoldedText): void {
  for (let at = 0; at < text.length;) {
    const unit = text.charCodeAt(at);
    if (unit === backslash || unit === ampersand) {
      const { point, end } = unit === backslash ? readBackslash(text, at) : readEntity(text, at);
      if (point !== null) append(point, at, into);
      at = end;
      continue;
    }
    const point = unit < 128 ? unit : (text.codePointAt(at) ?? unit);
    append(point, at, into);
    at += point > 0xffff ? 2 : 1;
  }
}

function append(point: number, origin: number, { units, origins }: FoldedText): void {
  if (point < 128) {
    const folded = foldAscii(point);
    if (folded === 0) return;
    units.push(folded);
    origins?.push(origin);
    return;
  }
  for (const unit of foldOther(point)) {
    units.push(unit);
    origins?.push(origin);
  }
}

/** The lower case of a letter, a digit itself, and 0 for anything else. */
function foldAscii(unit: number): number {
  if (unit >= 0x61 && unit <= 0x7a) return unit;
  if (unit >= 0x30 && unit <= 0x39) return unit;
  return unit >= 0x41 && unit <= 0x5a ? unit + 0x20 : 0;
}

/** What other characters fold to, kept because prompts of one script repeat the same few. */
const folds = new Map<number, readonly number[]>();

/** How many of them are kept: a client could send every character there is. */
const maxFolds = 4_096;

function foldOther(point: number): readonly number[] {
  const known = folds.get(point);
  if (known !== undefined) return known;
  const parts = String.fromCodePoint(point).normalize('NFKD').toLowerCase();
  const kept = parts.replaceAll(/[^\p{L}\p{N}]/gu, '');
  const units = Array.from({ length: kept.length }, (_, at) => kept.charCodeAt(at));
  if (folds.size < maxFolds) folds.set(point, units);
  return units;
}

/** Reads any number of backslashes and the escape behind them: a quoted quotation doubles them. */
function readBackslash(text: string, at: number): Escape {
  let end = at + 1;
  while (text.charCodeAt(end) === backslash) end++;
  const letter = text[end] ?? '';
  if ('nrtbfv0'.includes(letter)) return { point: null, end: end + letter.length };
  const first = readHex(text, end);
  if (first === null) return { point: null, end };
  const second = isHighSurrogate(first.point) ? readSecondHalf(text, first.end) : null;
  if (second === null) return first;
  return { point: (first.point - 0xd800) * 0x400 + (second.point - 0xdc00) + 0x10000, end: second.end };
}

function readHex(text: string, at: number): (Escape & { readonly point: number }) | null {
  unicodeEscape.lastIndex = at;
  const found = unicodeEscape.exec(text);
  if (found === null) return null;
  return { point: Number.parseInt(found[1] ?? found[2] ?? '', 16), end: at + found[0].length };
}

function readSecondHalf(text: string, at: number): (Escape & { readonly point: number }) | null {
  let end = at;
  while (text.charCodeAt(end) === backslash && end < at + maxEscapeChars) end++;
  const found = end === at ? null : readHex(text, end);
  return found !== null && found.point >= 0xdc00 && found.point <= 0xdfff ? found : null;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function readEntity(text: string, at: number): Escape {
  entity.lastIndex = at;
  const found = entity.exec(text);
  if (found === null) return { point: null, end: at + 1 };
  const [whole, hex, decimal] = found;
  const digits = hex ?? decimal;
  const point = digits === undefined ? null : Number.parseInt(digits, hex === undefined ? 10 : 16);
  return { point: point !== null && point <= 0x10ffff ? point : null, end: at + whole.length };
}
