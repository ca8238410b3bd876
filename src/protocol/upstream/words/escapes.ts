import type { Span } from './secret-shapes.ts';

/** An escaped character: its code point, `null` for none, as of the backslash before a quotation mark, and its end. */
interface Escape {
  readonly point: number | null;
  readonly end: number;
}

/** One byte of an escaped text, and the index behind it. */
interface EscapedByte {
  readonly byte: number;
  readonly end: number;
}

const backslash = 0x5c;
const percent = 0x25;
const ampersand = 0x26;
const blank = 0x20;

/** Text that was escaped several times has any number of backslashes, `25` or `amp;` in front of what it stands for. */
const percentByte = /%(?:25)*([0-9a-f]{2})/iy;
const percentUnit = /%u([0-9a-f]{4})/iy;
const hexByte = /\\+x([0-9a-f]{2})/iy;
const octalByte = /\\+([0-3][0-7]{2})/y;
const longPoint = /\\+(?:U([0-9a-fA-F]{8})|u\{([0-9a-fA-F]{1,6})\})/y;
const shortUnit = /\\+u([0-9a-f]{4})/iy;
const entity = /&((?:amp;)*)(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,8}));/iy;

/** Code points by the names behind them. */
function byName(pairs: string): ReadonlyMap<string, number> {
  const points = new Map<string, number>();
  for (const [, sign = '', name = ''] of pairs.matchAll(/(\S+) (\S+)/g))
    points.set(name, sign.codePointAt(0) ?? blank);
  return points;
}

/** Entities of letters with a mark, such as `&eacute;`: without it, they are their first letter. */
const markedLetter = /^([a-z])(?:acute|grave|circ|uml|tilde|ring|cedil|caron)$/i;

/** Entities of other letters, by the letter. */
const letterEntities = byName(
  'ß szlig æ aelig ø oslash ð eth þ thorn œ oelig α alpha β beta γ gamma δ delta ε epsilon ζ zeta η eta θ theta ' +
    'ι iota κ kappa λ lambda μ mu ν nu ξ xi ο omicron π pi ρ rho σ sigma ς sigmaf τ tau υ upsilon φ phi χ chi ψ psi ω omega',
);

/** Entities of signs that count when a message is searched: around quotations, and in addresses and keys. */
const signs = byName(
  '& amp < lt > gt " quot \' apos ‘ lsquo ’ rsquo “ ldquo ” rdquo « laquo » raquo … hellip : colon / sol \\ bsol ' +
    '@ commat . period _ lowbar = equals ? quest - hyphen + plus * ast # num % percnt ! excl $ dollar , comma',
);

/** Entities of all other signs. */
const otherSigns = new Set(
  (
    'nbsp ensp emsp thinsp shy zwj zwnj lrm rlm ndash mdash bull middot sbquo bdquo lsaquo rsaquo copy reg trade euro pound ' +
    'yen cent curren sect para deg times divide plusmn iexcl iquest not macr acute uml cedil brvbar larr rarr uarr darr ' +
    'harr infin ne le ge asymp dagger permil lpar rpar lsqb rsqb lcub rcub semi newline tab grave'
  ).split(' '),
);

/** Whether an escape may begin with a character. */
export function beginsEscape(unit: number): boolean {
  return unit === backslash || unit === percent || unit === ampersand;
}

/**
 * Reads the escape at an index where `beginsEscape` holds: of JSON, Python, JavaScript, C, HTML or an address. Bytes are
 * read as UTF-8 where they are that, and as Latin-1 otherwise.
 */
export function readEscape(text: string, at: number): Escape {
  const unit = text.charCodeAt(at);
  if (unit === ampersand) return readEntity(text, at);
  const escape = readUtf8(text, at) ?? readPoint(text, at);
  if (escape !== null) return escape;
  return unit === percent ? { point: percent, end: at + 1 } : readBackslash(text, at);
}

/** Reads one character of a text in which each byte is escaped. */
function readUtf8(text: string, at: number): Escape | null {
  const first = readByte(text, at);
  if (first === null) return null;
  const { byte } = first;
  const latin: Escape = { point: byte, end: first.end };
  if (byte < 0xc2 || byte > 0xf4) return latin;
  const more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  let point = byte & (0x3f >> more);
  let { end } = first;
  for (let step = 0; step < more; step++) {
    const next = readByte(text, end);
    if (next === null || next.byte >> 6 !== 2) return latin;
    point = (point << 6) | (next.byte & 0x3f);
    ({ end } = next);
  }
  return point <= 0x10ffff ? { point, end } : latin;
}

function readByte(text: string, at: number): EscapedByte | null {
  if (text.charCodeAt(at) === percent) return byteOf(percentByte, 16, text, at);
  if (text.charCodeAt(at) !== backslash) return null;
  return byteOf(hexByte, 16, text, at) ?? byteOf(octalByte, 8, text, at);
}

function byteOf(pattern: RegExp, radix: number, text: string, at: number): EscapedByte | null {
  const digits = matchAt(pattern, text, at);
  if (digits === null) return null;
  return { byte: Number.parseInt(digits[1] ?? '', radix), end: at + digits[0].length };
}

/** Reads an escape that names a code point, or the two halves of one. */
function readPoint(text: string, at: number): Escape | null {
  const long = matchAt(longPoint, text, at);
  if (long !== null) return pointOf(Number.parseInt(long[1] ?? long[2] ?? '', 16), at + long[0].length);
  const first = readUnit(text, at);
  if (first === null || first.point < 0xd800 || first.point > 0xdbff) return first;
  const second = readUnit(text, first.end);
  if (second === null || second.point < 0xdc00 || second.point > 0xdfff) return first;
  return { point: (first.point - 0xd800) * 0x400 + (second.point - 0xdc00) + 0x10000, end: second.end };
}

function readUnit(text: string, at: number): (Escape & { readonly point: number }) | null {
  const found = matchAt(shortUnit, text, at) ?? matchAt(percentUnit, text, at);
  return found === null ? null : { point: Number.parseInt(found[1] ?? '', 16), end: at + found[0].length };
}

/** What a backslash stands before without being a part of the text; before a letter it may divide a path. */
const escapedSigns = `"'/\`$`;

/** Backslashes, and the letter behind them if it stands for white space. */
function readBackslash(text: string, at: number): Escape {
  let end = at;
  while (text.charCodeAt(end) === backslash) end++;
  const letter = text[end] ?? '';
  if (letter !== '' && 'nrtbfv0'.includes(letter)) return { point: blank, end: end + 1 };
  return { point: letter === '' || escapedSigns.includes(letter) ? null : backslash, end };
}

function readEntity(text: string, at: number): Escape {
  const found = matchAt(entity, text, at);
  if (found === null) return { point: ampersand, end: at + 1 };
  const [whole, repeated = '', hex, decimal, name = ''] = found;
  const end = at + whole.length;
  const digits = hex ?? decimal;
  if (digits !== undefined) return pointOf(Number.parseInt(digits, hex === undefined ? 10 : 16), end);
  const point = pointOfName(name);
  // What looks like an entity may be a word of the request: its letters count.
  return point === null ? { point: ampersand, end: at + 1 + repeated.length } : { point, end };
}

function pointOfName(name: string): number | null {
  const lower = name.toLowerCase();
  const letter = markedLetter.exec(lower)?.[1]?.codePointAt(0);
  return letter ?? signs.get(lower) ?? letterEntities.get(lower) ?? (otherSigns.has(lower) ? blank : null);
}

function pointOf(point: number, end: number): Escape {
  return { point: point <= 0x10ffff ? point : null, end };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** A message, or what it says once its escapes are read. */
interface Layer {
  readonly text: string;
  /** The part of the message that a part of this text was written as. */
  readonly inMessage: (span: Span) => Span;
}

/** How often escapes are read: a text may be escaped as HTML, and that as JSON. */
const maxDecodings = 2;

/** The forms in which a message is searched: as it is, and with its escapes read, once and twice. */
export function layersOf(message: string): readonly Layer[] {
  const layers: Layer[] = [];
  let layer: Layer = { text: message, inMessage: (span) => span };
  for (;;) {
    layers.push(layer);
    const { text, inMessage } = layer;
    const { decoded, starts, ends } = decode(text);
    if (layers.length > maxDecodings || decoded === text) return layers;
    const back = ({ start, end, mark }: Span): Span => ({
      start: starts[start] ?? 0,
      end: ends[end - 1] ?? text.length,
      mark,
    });
    layer = { text: decoded, inMessage: (span) => inMessage(back(span)) };
  }
}

/** Reads the escapes of a text. `starts` and `ends` are where each unit of the result was written. */
function decode(text: string): {
  readonly decoded: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
} {
  let decoded = '';
  const starts: number[] = [];
  const ends: number[] = [];
  for (let at = 0; at < text.length;) {
    const { point, end } = beginsEscape(text.charCodeAt(at))
      ? readEscape(text, at)
      : { point: text.charCodeAt(at), end: at + 1 };
    const written = point === null ? '' : String.fromCodePoint(point);
    decoded += written;
    for (let unit = 0; unit < written.length; unit++) {
      starts.push(at);
      ends.push(end);
    }
    at = end;
  }
  return { decoded, starts, ends };
}
