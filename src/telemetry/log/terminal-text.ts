import stringWidth from 'string-width';
import { escapeControlCharacters } from '../../shared/control-characters.ts';

/** A value in exactly so many columns: filled with blanks, or cut and ended with an ellipsis. */
export function cell(value: string | number | null, columns: number): string {
  const text = escapeControlCharacters(String(value ?? '-'));
  const shown = stringWidth(text) <= columns ? text : `${cut(text, columns - 1)}…`;
  return shown + ' '.repeat(Math.max(0, columns - stringWidth(shown)));
}

/** The longest beginning of a text that fits into so many columns. */
function cut(text: string, columns: number): string {
  let width = 0;
  let end = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    width += stringWidth(segment);
    if (width > columns) break;
    end = index + segment.length;
  }
  return text.slice(0, end);
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Breaks a text between words into lines of at most so many columns; a longer word is broken within. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let rest = escapeControlCharacters(text);
  while (stringWidth(rest) > columns) {
    const part = cut(rest, columns);
    const space = rest[part.length] === ' ' ? part.length : part.lastIndexOf(' ');
    const line = space > 0 ? rest.slice(0, space) : part;
    lines.push(line);
    rest = rest.slice(line.length).trimStart();
  }
  return [...lines, rest];
}

/** How many columns a text takes once it is escaped. */
export function widthOf(text: string): number {
  return stringWidth(escapeControlCharacters(text));
}
