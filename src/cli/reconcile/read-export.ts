import { createReadStream } from 'node:fs';
import { nanosPerUsd, plainDecimal } from '../../shared/money.ts';
import { CsvReader } from '../../shared/csv-reader.ts';
import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import { parseMoment } from './calendar.ts';
import type { Calendar } from './calendar.ts';
import { comparedQuantities, fieldsOf, findFormat } from './formats.ts';
import type { ExportFormat, FormatName } from './formats.ts';
import { ByDayAndModel, noSums } from './quantities.ts';
import type { Quantity, Sums } from './quantities.ts';

/** What a provider's export says of a day and a model. */
interface TheirLine {
  readonly sums: Sums;
  /** In nano-USD. */
  costNanos: bigint;
}

/** What a provider's export says. */
export interface TheirUsage {
  readonly format: FormatName;
  /** The quantities that it has. */
  readonly compared: readonly Quantity[];
  readonly hasCost: boolean;
  readonly lines: ByDayAndModel<TheirLine>;
  /** The first and the last day in it; `null` if it has no rows. */
  readonly firstDay: string | null;
  readonly lastDay: string | null;
  readonly rows: number;
  /** Whether its last page says that there are more. */
  readonly isCut: boolean;
}

/** How an export is read. */
interface ReadingTerms {
  readonly format: FormatName | null;
  readonly calendar: Calendar;
  /** Our names of models, by the provider's; others are the same. */
  readonly names: ReadonlyMap<string, string>;
}

/** Reads a provider's export. Throws an `Error` that names the line and the field at fault. */
export async function readExport(
  file: string,
  { format: chosen, calendar, names }: ReadingTerms,
): Promise<TheirUsage> {
  const { form, has, rows, emptyBuckets, isCut } = await openExport(file);
  const format = findFormat(form, has, chosen);
  const compared = comparedQuantities(format, has);
  const timeField = format.time.find(has) ?? '';
  const lines = new ByDayAndModel<TheirLine>(() => ({ sums: noSums(), costNanos: 0n }));
  let [firstDay, lastDay, read]: [string | null, string | null, number] = [null, null, 0];
  const readDay = (row: ExportRow): string => {
    const day = dayIn(row, timeField, calendar);
    if (firstDay === null || day < firstDay) firstDay = day;
    if (lastDay === null || day > lastDay) lastDay = day;
    return day;
  };
  for await (const row of rows) {
    const model = readModel(row, format);
    const line = lines.at(readDay(row), names.get(model) ?? model);
    for (const quantity of compared) line.sums[quantity] += readQuantity(row, format, quantity);
    if (format.cost !== null) line.costNanos += readCost(row, format.cost);
    read++;
  }
  for (const bucket of emptyBuckets) readDay(bucket);
  const hasCost = format.cost !== null && has(format.cost);
  return { format: format.name, compared, hasCost, lines, firstDay, lastDay, rows: read, isCut };
}

function dayIn(row: ExportRow, field: string, calendar: Calendar): string {
  const moment = parseMoment(row.get(field));
  if (moment === null)
    throw fault(row, field, 'expected a day such as 2030-01-31, a time in ISO 8601, or seconds since 1970');
  return moment.kind === 'day' ? moment.day : calendar.dayOf(moment.ms);
}

function readModel(row: ExportRow, { model: field, howToGroup }: ExportFormat): string {
  const model = row.get(field);
  if (typeof model !== 'string' || model === '') throw fault(row, field, `no model: ${howToGroup}`);
  return model;
}

function readQuantity(row: ExportRow, { quantities }: ExportFormat, quantity: Quantity): number {
  const each = quantities[quantity];
  if (each === undefined) return 0;
  if (each === 'each_row') return 1;
  return fieldsOf(each).reduce((sum, field) => sum + readCount(row, field), 0);
}

/** A count; an empty or missing one is 0. */
function readCount(row: ExportRow, field: string): number {
  const value = row.get(field) ?? '';
  if (value === '') return 0;
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  throw fault(
    row,
    field,
    `expected a whole number without separators, of at most ${Number.MAX_SAFE_INTEGER}`,
  );
}

/** The longest number of a cost, in characters. */
const maxCostChars = 40;

/** A cost in USD, rounded to nano-USD; a missing one is 0. */
function readCost(row: ExportRow, field: string): bigint {
  const value = row.get(field) ?? '';
  const text = (
    typeof value === 'number' ? String(value) : typeof value === 'string' ? value : 'none'
  ).replace(/^(-?)\$/, '$1');
  if (text === '') return 0n;
  const sign = text.startsWith('-') ? -1n : 1n;
  const match = /^(\d+)(?:\.(\d+))?$/.exec(plainDecimal(text.replace(/^-/, '')));
  if (match === null || text.length > maxCostChars) throw fault(row, field, 'expected an amount of USD');
  const [, whole = '', fraction = ''] = match;
  const digits = fraction.padEnd(10, '0');
  const rounded = (BigInt(digits.slice(0, 10)) + 5n) / 10n;
  return sign * (BigInt(whole) * BigInt(nanosPerUsd) + rounded);
}

function fault({ place }: ExportRow, field: string, what: string): Error {
  return new Error(`${place}: ${field}: ${what}`);
}

/** The largest export in JSON, in bytes: it is read whole, unlike CSV. */
const maxJsonBytes = 67_108_864;

/** A row of an export: an object of JSON, or a line of CSV. */
export interface ExportRow {
  /** Where it is, for messages: `line 7`, `entry 3`. */
  readonly place: string;
  /** The value of a field; `undefined` without one. In JSON, a dot leads into an object. */
  readonly get: (field: string) => unknown;
}

/** An export as it is read: first what its fields are called, then its rows. */
interface ExportRows {
  readonly form: ExportFormat['form'];
  /** Whether the rows have a field. */
  readonly has: (field: string) => boolean;
  readonly rows: AsyncIterable<ExportRow> | Iterable<ExportRow>;
  /** The times of buckets without rows, in which nothing was used. */
  readonly emptyBuckets: readonly ExportRow[];
  /** Whether the last page of JSON says that there are more. */
  readonly isCut: boolean;
}

/** The most blanks before the first character of an export, in UTF-16 code units: a device may have nothing else. */
const maxBlankChars = 1_048_576;

/** Opens an export: JSON if it begins like that, and else CSV, which is read as it is used. Throws if it is empty. */
export async function openExport(file: string): Promise<ExportRows> {
  const stream = createReadStream(file, 'utf8');
  const pieces = (stream as AsyncIterable<string>)[Symbol.asyncIterator]();
  let head = '';
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
    head += next.value;
    if (/[^\s\ufeff]/.test(head)) break;
    if (head.length > maxBlankChars)
      throw new Error(`the file begins with more than ${maxBlankChars} blanks`);
  }
  if (/^[\s\ufeff]*[[{]/.test(head)) return jsonRows(await readRest(head, pieces));
  return csvRows(head, pieces);
}

async function readRest(head: string, pieces: AsyncIterator<string>): Promise<string> {
  let text = head;
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
    text += next.value;
    if (text.length > maxJsonBytes)
      throw new Error(`an export in JSON may have at most ${maxJsonBytes} bytes: use several files, or CSV`);
  }
  return text;
}

async function csvRows(head: string, pieces: AsyncIterator<string>): Promise<ExportRows> {
  const rows = readCsv(head, pieces);
  const header = await rows.next();
  if (header.done === true) throw new Error('the file is empty');
  const names = header.value.cells.map((cell) => cell.trim());
  const columns = new Map(names.map((name, column) => [name, column]));
  const first = names.findIndex((name, column) => name !== '' && columns.get(name) !== column);
  // Not by their name: a file without a header has a row of its data here.
  if (first !== -1)
    throw new Error(
      `line 1: columns ${first + 1} and ${Number(columns.get(names[first] ?? '')) + 1} have the same name`,
    );
  async function* contents(): AsyncGenerator<ExportRow> {
    for await (const { line, cells } of rows) {
      const place = `line ${line}`;
      if (cells.length !== names.length)
        throw new Error(`${place}: ${cells.length} cells, where the header has ${names.length}`);
      yield { place, get: (field) => cells[columns.get(field) ?? -1] };
    }
  }
  return {
    form: 'csv',
    has: (field) => columns.has(field),
    rows: contents(),
    emptyBuckets: [],
    isCut: false,
  };
}

async function* readCsv(head: string, pieces: AsyncIterator<string>) {
  const reader = new CsvReader();
  yield* reader.push(head);
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next())
    yield* reader.push(next.value);
  yield* reader.end();
}

/** The rows of JSON: a list of rows, a page of them (`data`), or several pages; a page may have buckets (`results`). */
function jsonRows(text: string): ExportRows {
  const content = parseJson(text.replace(/^\ufeff/, ''));
  if (content === undefined)
    throw new Error('the file begins like JSON, but is none: put several pages into a list');
  const [pages, entries] = [pagesOf(content), entriesOf(content)];
  const objects = entries.flatMap(rowsOfEntry);
  const first = objects[0] ?? {};
  return {
    form: 'json',
    has: (field) => valueAt(first, field) !== undefined,
    rows: objects.map(rowOf),
    emptyBuckets: entries.filter(isEmptyBucket).map(rowOf),
    isCut: pages.length > 0 && pages.at(-1)?.['has_more'] === true,
  };
}

type Entry = Readonly<Record<string, unknown>>;

function pagesOf(content: unknown): readonly Entry[] {
  if (Array.isArray(content)) return content.flatMap(pagesOf);
  return isPlainObject(content) && Array.isArray(content['data']) ? [content] : [];
}

function entriesOf(content: unknown): readonly Entry[] {
  if (Array.isArray(content)) return content.flatMap(entriesOf);
  if (!isPlainObject(content)) throw new Error('the JSON has an entry that is no object');
  return Array.isArray(content['data']) ? entriesOf(content['data']) : [content];
}

/** A bucket's rows have its time. */
function rowsOfEntry(entry: Entry): readonly Entry[] {
  const { results, ...bucket } = entry;
  if (!Array.isArray(results)) return [entry];
  return results.filter(isPlainObject).map((row) => Object.assign({}, bucket, row));
}

function isEmptyBucket({ results }: Entry): boolean {
  return Array.isArray(results) && results.length === 0;
}

function rowOf(entry: Entry, index: number): ExportRow {
  return { place: `entry ${index + 1}`, get: (field) => valueAt(entry, field) };
}

function valueAt(entry: Entry, field: string): unknown {
  let here: unknown = entry;
  for (const name of field.split('.')) here = isPlainObject(here) ? here[name] : undefined;
  return here;
}
