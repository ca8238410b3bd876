import { escapeControlCharacters } from '../shared/control-characters.ts';
import { describeError } from './describe-error.ts';

/** The option of commands that print JSON. */
export interface Json {
  readonly json?: true;
}

/** The longest line of texts for people, in characters. */
export const maxColumns = 100;

/** Runs a command's work and prints its result; a failure becomes one line on standard error and a non-zero exit. */
export async function report(work: () => Promise<string>): Promise<void> {
  await run(async () => console.log(await work()));
}

/** The action of a command: loads the function that does it, calls it with what commander has read, and prints the result. */
export function printing<Given extends readonly unknown[]>(
  load: () => Promise<(...given: Given) => Promise<string>>,
): (...given: Given) => Promise<void> {
  return (...given) => report(async () => (await load())(...given));
}

/** Runs the work of a command that prints by itself; a failure is reported in the same way. */
export async function run(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    console.error(forTerminal(`textgate: ${describeError(error)}`));
    process.exitCode = 1;
  }
}

/** How wide a text is, and the text in exactly so much: filled, or cut and ended with an ellipsis. */
interface Measure {
  readonly widthOf: (text: string) => number;
  readonly cell: (text: string, width: number) => string;
}

/** In characters, for the reason that `wrap` has. */
const inCharacters: Measure = {
  widthOf: (text) => text.length,
  cell: (text, width) => (text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width)),
};

/** How the columns of a table are laid out, by their titles. */
interface TableLayout {
  /** Columns of numbers. */
  readonly right?: readonly string[];
  /** Columns whose cells are cut where a line would be too long, the widest first, down to their title. */
  readonly cut?: readonly string[];
  /** The longest line, and what it is measured in. */
  readonly width?: number;
  readonly measure?: Measure;
}

/** The width to which a column is cut at most, also if its title is shorter. */
const minCutColumns = 8;

export const columnGap = '  ';

/** Formats rows as an aligned table under a header line. Control characters in a cell are escaped. */
export function writeTable(
  head: readonly string[],
  cells: readonly (readonly string[])[],
  { right = [], cut = [], width = maxColumns, measure: { widthOf, cell } = inCharacters }: TableLayout = {},
): string {
  const rows = [head, ...cells.map((row) => row.map(escapeControlCharacters))];
  const wanted = head.map((_title, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ''))));
  const least = head.map((title) =>
    cut.includes(title) ? Math.max(minCutColumns, widthOf(title)) : Infinity,
  );
  const upTo = (most: number): readonly number[] =>
    wanted.map((each, column) => Math.min(each, Math.max(most, least[column] ?? 0)));
  let most = Math.max(...wanted);
  while (most > minCutColumns && lineWidth(upTo(most)) > width) most--;
  const widths = upTo(most);
  const write = (text: string, column: number): string => {
    const columnWidth = widths[column] ?? 0;
    const blanks = right.includes(head[column] ?? '') ? Math.max(0, columnWidth - widthOf(text)) : 0;
    return ' '.repeat(blanks) + cell(text, columnWidth - blanks);
  };
  return rows.map((row) => row.map(write).join(columnGap).trimEnd()).join('\n');
}

function lineWidth(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each + columnGap.length, -columnGap.length);
}

/** A text with its label; one that is `null` is left out. */
export type Field = readonly [label: string, text: string | null];

/**
 * Formats labelled texts, one below the other. Texts are wrapped between words so that no line is longer than 100
 * characters, and control characters in them are escaped.
 */
export function writeFields(fields: readonly Field[]): string {
  const width = Math.max(...fields.map(([label, text]) => (text === null ? 0 : label.length))) + 2;
  const lines = fields.flatMap(([label, text]) => {
    if (text === null) return [];
    const parts = wrap(escapeControlCharacters(text), maxColumns - width);
    return parts.map((part, index) => (index === 0 ? label : '').padEnd(width) + part);
  });
  return lines.join('\n');
}

/**
 * Breaks a text into lines; a word that is longer than a line is broken, too. It counts characters: the library that
 * counts a terminal's columns for the log would be loaded by every command, `--help` included.
 */
export function wrap(text: string, columns: number): readonly string[] {
  return (
    text.match(new RegExp(`.{1,${columns}}(?=\\s|$)|.{1,${columns}}`, 'gu'))?.map((line) => line.trim()) ?? [
      '',
    ]
  );
}

/**
 * An error's text for standard error: control characters, as of an argument, are escaped; on a terminal, its lines are
 * wrapped between words, and keep their indentation.
 */
export function forTerminal(text: string): string {
  const shown = text.split('\n').map(escapeControlCharacters);
  if (!process.stderr.isTTY) return shown.join('\n');
  const lines = shown.map((line) => {
    const [indent = ''] = /^[ -]*/.exec(line) ?? [];
    const wrapped = wrap(line.slice(indent.length), maxColumns - indent.length);
    return indent + wrapped.join(`\n${' '.repeat(indent.length)}`);
  });
  return lines.join('\n');
}

/** A time in ISO 8601 as a day and a time in UTC, to the second: `2030-01-31 12:00:00`. */
export function writeTime(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}

/** A duration as `312 ms` or `1.20 s`. */
export function writeMs(milliseconds: number): string {
  return milliseconds < 1_000
    ? `${Math.round(milliseconds)} ms`
    : `${(milliseconds / 1_000).toFixed(milliseconds < 100_000 ? 2 : 0)} s`;
}

/**
 * A position in a queue with the expected wait, as `position 3, ~14 s` or `position 3, ~2 min`. Estimates are off by a sixth and
 * more, so nothing below a second is written. `null` where no wait is known.
 */
export function writePosition(position: number, expectedMs: number | null): string {
  if (expectedMs === null) return `position ${position}`;
  const seconds = Math.max(1, Math.round(expectedMs / 1_000));
  return `position ${position}, ~${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`}`;
}
