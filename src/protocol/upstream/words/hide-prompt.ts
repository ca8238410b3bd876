import type { TextTurn } from '../../text.ts';
import { registeredName } from '../../contract/registry.ts';
import { foldMessage, foldText } from './folded-text.ts';
import type { FoldedMessage } from './folded-text.ts';
import { findSharedRuns, findWindows } from './shared-runs.ts';
import type { Span } from './secret-shapes.ts';

/**
 * The shortest run of letters and digits that is taken for a quotation of the request: about three words. Shorter ones
 * are mostly phrases that any English message shares with any longer text, such as "is not supported".
 */
const minRun = 16;

/** The same in scripts of which a character is a syllable or a word. */
const minIdeographs = 6;
const firstIdeograph = 0x2e80;

/** The shortest text in quotation marks, and the shortest whole turn outside of them, that is searched for. */
const minPhrase = 4;

/** Between two quotations, so few letters and digits are taken for a part of the same one. */
const maxGap = 8;

/** The longest text of a request that is searched, in UTF-16 code units. */
const maxSearchedChars = 2_097_152;

/** The most letters and digits that it may fold to: one character of Arabic may fold to eighteen. */
const maxSearchedUnits = 4_194_304;

/** Words of the protocols that a message may quote although the request has them, too. */
const wireWords = new Set(
  'system user assistant developer tool function role content text string object array integer number boolean null true false json type'.split(
    ' ',
  ),
);

/** A request's text, prepared to be searched for. */
interface FoldedPrompt {
  readonly units: readonly number[];
  /** The turns that are too short to be found as runs. */
  readonly shortTurns: ReadonlySet<string>;
}

/** The prepared texts of requests: each is prepared once, however many upstreams are tried. */
const prepared = new WeakMap<readonly TextTurn[], FoldedPrompt | null>();

/** Prepares the text of a request; `null` if it is too long to be searched. */
export function foldPrompt(turns: readonly TextTurn[]): FoldedPrompt | null {
  const known = prepared.get(turns);
  if (known !== undefined) return known;
  const prompt = prepare(turns);
  prepared.set(turns, prompt);
  return prompt;
}

function prepare(turns: readonly TextTurn[]): FoldedPrompt | null {
  if (turns.reduce((sum, turn) => sum + turn.text.length, 0) > maxSearchedChars) return null;
  const units: number[] = [];
  const shortTurns = new Set<string>();
  for (const { text } of turns) {
    const start = units.length;
    if (!foldText(text, units, maxSearchedUnits)) return null;
    const end = units.length;
    if (end - start < minRun) shortTurns.add(textOf(units, [start, end]));
  }
  return { units, shortTurns };
}

/**
 * Finds what a message quotes of a request: runs of `minRun` letters and digits, shorter texts in quotation marks, and
 * whole turns. Capitals, white space, punctuation and escapes make no difference. Values that a message says it got are
 * not searched for, but always found.
 */
export function findPrompt(message: string, { units, shortTurns }: FoldedPrompt): readonly Span[] {
  const folded = foldMessage(message);
  const echoed: Span[] = echoedValues(message).map(([start, end]) => ({ start, end, mark: '[text]' }));
  const parts = [
    ...findSharedRuns(folded.units, minRun, units),
    ...findSharedRuns(folded.units, minIdeographs, units, (unit) => unit >= firstIdeograph),
    ...findQuoted(message, folded, units, shortTurns),
    ...findWholeTurns(message, folded, shortTurns),
  ];
  return [...echoed, ...joinNear(parts).map((part) => spanOf(message, folded, part))];
}

/** Short texts in quotation marks that the request has, too. */
function findQuoted(
  message: string,
  folded: FoldedMessage,
  whole: readonly number[],
  shortTurns: ReadonlySet<string>,
): readonly Part[] {
  const found: Part[] = [];
  const byLength = new Map<number, number[]>();
  const lookFor = (start: number, length: number): void => {
    const starts = byLength.get(length);
    if (starts === undefined) byLength.set(length, [start]);
    else starts.push(start);
  };
  const { closed, open } = quotedParts(message);
  for (const [from, to] of closed) {
    const part: Part = [firstUnit(folded, from), firstUnit(folded, to)];
    const length = part[1] - part[0];
    if (length === 0 || length >= minRun || isWireWord(message.slice(from, to))) continue;
    if (shortTurns.has(textOf(folded.units, part))) found.push(part);
    else if (length >= minPhrase) lookFor(part[0], length);
  }
  for (const from of open) {
    const start = firstUnit(folded, from);
    const most = Math.min(minRun, folded.units.length - start + 1);
    for (let length = minPhrase; length < most; length++) lookFor(start, length);
  }
  for (const [length, starts] of byLength)
    for (const start of findWindows(folded.units, starts, length, whole)) found.push([start, start + length]);
  return found;
}

/** Whole turns, from the beginning of a word to the end of one. */
function findWholeTurns(
  message: string,
  folded: FoldedMessage,
  shortTurns: ReadonlySet<string>,
): readonly Part[] {
  if (shortTurns.size === 0) return [];
  const found: Part[] = [];
  const { units, starts, ends } = folded;
  const isWithin = (at: number): boolean =>
    at > 0 && at < units.length && (starts[at] ?? 0) <= (ends[at - 1] ?? 0);
  for (let start = 0; start < units.length; start++) {
    if (isWithin(start)) continue;
    for (let end = start + minPhrase; end < start + minRun && end <= units.length; end++) {
      if (isWithin(end) || !shortTurns.has(textOf(units, [start, end]))) continue;
      const span = spanOf(message, folded, [start, end]);
      if (!isWireWord(message.slice(span.start, span.end))) found.push([start, end]);
    }
  }
  return found;
}

function isWireWord(text: string): boolean {
  return wireWords.has(text) || registeredName(text) !== 'other';
}

/** The first unit whose character is at an index of the message or behind it. */
function firstUnit({ starts }: FoldedMessage, index: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) < index) low = middle + 1;
    else high = middle;
  }
  return low;
}

function textOf(units: readonly number[], [start, end]: Part): string {
  return String.fromCharCode(...units.slice(start, end));
}

/** Joins parts that overlap, or that a few letters divide. */
function joinNear(parts: readonly Part[]): readonly Part[] {
  const joined: [number, number][] = [];
  for (const [start, end] of parts.toSorted(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last !== undefined && start - last[1] <= maxGap) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  return joined;
}

/** The characters of a part, and the rest of the words in which it begins and ends. */
function spanOf(message: string, { starts, ends }: FoldedMessage, [first, behind]: Part): Span {
  let start = starts[first] ?? 0;
  let end = ends[behind - 1] ?? message.length;
  while (start > 0 && isWordAt(message, start - 1)) start--;
  while (end < message.length && isWordAt(message, end)) end++;
  return { start, end, mark: '[text]' };
}

/** A part of a text, from one index to another. */
type Part = readonly [number, number];

const closings = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
  ['‘', '’'],
  ['«', '»'],
]);

/** The letters before a literal of Python, as in `b'text'`. */
const literalPrefix = /(?:^|[^\p{L}\p{N}])(?:[bru]|[br]{2})$/iu;

/** A quotation mark, or dots in place of what was left out. */
const borders = /["'`“”‘’«»]|\.{3,}|…/g;

/** The parts of a message in quotation marks, and where parts begin whose end is cut off. */
function quotedParts(message: string): {
  readonly closed: readonly Part[];
  readonly open: readonly number[];
} {
  const closed: Part[] = [];
  const open = new Map<string, number>();
  for (let at = 0; at < message.length; at++) {
    const mark = message[at] ?? '';
    const start = open.get(mark);
    if (start !== undefined && !isWordAt(message, at + 1)) {
      closed.push([start, at]);
      open.delete(mark);
    } else if (start === undefined && closings.has(mark) && mayOpen(message, at))
      open.set(closings.get(mark) ?? mark, at + 1);
  }
  return { closed: [...closed, ...cutParts(message)], open: [...open.values()] };
}

/** The pieces of a quotation whose middle or end was left out: from a quotation mark to dots, or from dots to a mark. */
function cutParts(message: string): readonly Part[] {
  const parts: Part[] = [];
  let from = 0;
  let before = '';
  for (const { 0: border, index } of message.matchAll(borders)) {
    if (before !== '' && isCut(before) !== isCut(border)) parts.push([from, index]);
    from = index + border.length;
    before = border;
  }
  return parts;
}

function isCut(border: string): boolean {
  return border.startsWith('.') || border === '…';
}

function mayOpen(message: string, at: number): boolean {
  return !isWordAt(message, at - 1) || literalPrefix.test(message.slice(Math.max(0, at - 3), at));
}

/** Whether a letter or digit is at an index. */
function isWordAt(message: string, at: number): boolean {
  return /[\p{L}\p{N}]/u.test(message[at] ?? '');
}

/** Where Pydantic says what it got instead of a valid value: a number or a constant is told, a text is the client's. */
const echo = /\binput_value=(?!(?:None|True|False|-?\d[\d.]*)(?:[,\]\s]|$))/g;
const behindEcho = ', input_type=';

/** The values of a request that a message of Pydantic quotes, with their middle left out. */
function echoedValues(message: string): readonly Part[] {
  return Array.from(message.matchAll(echo), ({ 0: name, index }): Part => {
    const start = index + name.length;
    const end = message.indexOf(behindEcho, start);
    return [start, end === -1 ? message.length : end];
  });
}
