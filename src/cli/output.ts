import { escapeControlCharacters } from '../shared/control-characters.ts';
import { describeError } from './describe-error.ts';

/** The option of commands that print JSON. */
export interface Json {
  readonly json?: true;
}

/** The longest line of texts for people, in characters. */
export const maxColumns = 100;

/** Runs a command's work; a failure becomes one line on standard error and a non-zero exit. */
export async function report(work: () => Promise<string>): Promise<void> {
  try {
    console.log(await work());
  } catch (error) {
    console.error(`textgate: ${describeError(error)}`);
    process.exitCode = 1;
  }
}

/** Formats rows as an aligned table under a header line. Control characters in a cell are escaped. */
export function writeTable(head: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(escapeControlCharacters));
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/**
 * Formats labelled texts, one below the other. Texts are wrapped between words so that no line is longer than 100
 * characters, and control characters in them are escaped.
 */
export function writeFields(fields: readonly (readonly [label: string, text: string])[]): string {
  const width = Math.max(...fields.map(([label]) => label.length)) + 2;
  return fields
    .map(([label, text]) => {
      const lines = wrap(escapeControlCharacters(text), maxColumns - width);
      return lines.map((line, index) => (index === 0 ? label : '').padEnd(width) + line).join('\n');
    })
    .join('\n');
}

/** Breaks a text into lines; a word that is longer than a line is broken, too. */
export function wrap(text: string, columns: number): readonly string[] {
  return (
    text.match(new RegExp(`.{1,${columns}}(?=\\s|$)|.{1,${columns}}`, 'gu'))?.map((line) => line.trim()) ?? [
      '',
    ]
  );
}
