import { escapeControlCharacters } from '../../shared/control-characters.ts';

/** A value of a cell. */
type CsvValue = string | number | null;

/** A column in CSV: its name, and what it says of a row. */
export type CsvColumn<Row> = readonly [name: string, read: (row: Row) => CsvValue];

/** The line with the names of the columns. */
export function writeCsvHeader(columns: readonly CsvColumn<never>[]): string {
  return `${columns.map(([name]) => name).join(',')}\r\n`;
}

/** Rows as CSV with a header line. */
export function writeCsv<Row>(rows: readonly Row[], columns: readonly CsvColumn<Row>[]): string {
  return writeCsvHeader(columns) + rows.map((row) => writeCsvLine(row, columns)).join('');
}

/** A row as a line of CSV (RFC 4180). */
export function writeCsvLine<Row>(row: Row, columns: readonly CsvColumn<Row>[]): string {
  return `${columns.map(([, read]) => csvCell(read(row))).join(',')}\r\n`;
}

/** Quotes a cell where CSV requires it, escapes control characters, and turns spreadsheet formulas into text. */
function csvCell(value: CsvValue): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const escaped = escapeControlCharacters(value);
  const text = /^[=+\-@]/.test(escaped) && !/^-\d+(?:\.\d+)?$/.test(escaped) ? `'${escaped}` : escaped;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
