import measure from 'fast-string-truncated-width';
import { escapeControlCharacters } from '../../shared/control-characters.ts';

/** A value in exactly so many columns: filled with blanks, or cut and ended with an ellipsis. */
export function cell(value: string | number | null, columns: number): string {
  const text = escapeControlCharacters(String(value ?? '-'));
  const shown = measure(text).width <= columns ? text : `${cut(text, columns - 1)}…`;
  return shown + ' '.repeat(Math.max(0, columns - measure(shown).width));
}

/** Made when a text is cut for the first time: its tables take tens of milliseconds, which no start should wait for. */
let graphemes: Intl.Segmenter | null = null;

/** The longest beginning of a text that fits into so many columns. */
function cut(text: string, columns: number): string {
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  let width = 0;
  let end = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    width += measure(segment).width;
    if (width > columns) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

/** Breaks a text between words into lines of at most so many columns; a longer word is broken within. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let rest = escapeControlCharacters(text);
  while (measure(rest).width > columns) {
    // At least a character, also where one with its marks is wider than a line.
    const part = cut(rest, columns) || String.fromCodePoint(rest.codePointAt(0) ?? 0);
    const space = rest[part.length] === ' ' ? part.length : part.lastIndexOf(' ');
    const line = space > 0 ? rest.slice(0, space) : part;
    lines.push(line);
    rest = rest.slice(line.length).trimStart();
  }
  return [...lines, rest];
}

/** How many columns a text takes once it is escaped. */
export function widthOf(text: string): number {
  return measure(escapeControlCharacters(text)).width;
}
