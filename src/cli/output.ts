import { escapeControlCharacters } from '../shared/control-characters.ts';

/** Runs a command's work; a failure becomes one line on standard error and a non-zero exit. */
export async function report(work: () => Promise<string>): Promise<void> {
  try {
    console.log(await work());
  } catch (error) {
    console.error(`textgate: ${error instanceof Error ? error.message : String(error)}`);
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
