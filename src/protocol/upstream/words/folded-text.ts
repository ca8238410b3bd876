import { beginsEscape, readEscape } from './escapes.ts';

/**
 * A text reduced to its letters and digits, in lower case and without accents: what stays the same when a provider quotes
 * a text with other white space, other capitals, or escaped as JSON, HTML or an address.
 */
interface FoldedText {
  /** The letters and digits, as UTF-16 code units. */
  readonly units: number[];
  /** Where each unit was written; `null` if that is not wanted. */
  readonly places: Places | null;
}

/** For each unit, where its character begins in the text, and the index behind it. */
interface Places {
  readonly starts: number[];
  readonly ends: number[];
}

/** A folded text whose units are traced back. */
export interface FoldedMessage extends Places {
  readonly units: readonly number[];
}

/** Folds a text with the places of its units. */
export function foldMessage(text: string): FoldedMessage {
  const units: number[] = [];
  const places: Places = { starts: [], ends: [] };
  fold(text, { units, places }, Infinity);
  return { units, ...places };
}

/**
 * Folds a text and appends it to `units`. Returns whether there are at most `maxUnits` of them; otherwise it stops soon
 * after: a single character may fold to many.
 */
export function foldText(text: string, units: number[], maxUnits: number): boolean {
  fold(text, { units, places: null }, maxUnits);
  return units.length <= maxUnits;
}

function fold(text: string, into: FoldedText, maxUnits: number): void {
  for (let at = 0; at < text.length && into.units.length <= maxUnits;) {
    const unit = text.charCodeAt(at);
    if (beginsEscape(unit)) {
      const { point, end } = readEscape(text, at);
      if (point !== null) append(point, at, end, into);
      at = end;
      continue;
    }
    const point = unit < 128 ? unit : (text.codePointAt(at) ?? unit);
    const end = at + (point > 0xffff ? 2 : 1);
    append(point, at, end, into);
    at = end;
  }
}

function append(point: number, start: number, end: number, { units, places }: FoldedText): void {
  if (point < 128) {
    const folded = foldAscii(point);
    if (folded === 0) return;
    units.push(folded);
    places?.starts.push(start);
    places?.ends.push(end);
    return;
  }
  const folded = foldOther(point);
  for (let at = 0; at < folded.length; at++) {
    units.push(folded.charCodeAt(at));
    places?.starts.push(start);
    places?.ends.push(end);
  }
}

/** The lower case of a letter, a digit itself, and 0 for anything else. */
function foldAscii(unit: number): number {
  if (unit >= 0x61 && unit <= 0x7a) return unit;
  if (unit >= 0x30 && unit <= 0x39) return unit;
  return unit >= 0x41 && unit <= 0x5a ? unit + 0x20 : 0;
}

/** What characters fold to, kept because folding one costs much more than finding it: at most 135,168 of them. */
const folds = new Map<number, string>();

/** From here on all letters are ideographs, which fold to themselves, but for a few that are forms of others. */
const firstRareIdeograph = 0x20000;
const firstForm = 0x2f000;
const firstBehindForms = 0x30000;

/** From here on there are no letters. */
const firstBehindLetters = 0x40000;

function foldOther(point: number): string {
  if (point >= firstBehindLetters) return '';
  if (point >= firstRareIdeograph && (point < firstForm || point >= firstBehindForms))
    return String.fromCodePoint(point);
  const known = folds.get(point);
  if (known !== undefined) return known;
  const parts = String.fromCodePoint(point).normalize('NFKD').toLowerCase();
  const kept = parts.replaceAll(/[^\p{L}\p{N}]/gu, '');
  folds.set(point, kept);
  return kept;
}
