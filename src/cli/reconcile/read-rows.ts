import { createReadStream } from 'node:fs';
import { CsvReader } from '../../shared/csv-reader.ts';
import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import type { ExportFormat } from './formats.ts';

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
export interface ExportRows {
  readonly form: ExportFormat['form'];
  /** Whether the rows have a field. */
  readonly has: (field: string) => boolean;
  readonly rows: AsyncIterable<ExportRow> | Iterable<ExportRow>;
  /** The times of buckets without rows, in which nothing was used. */
  readonly emptyBuckets: readonly ExportRow[];
  /** Whether the last page of JSON says that there are more. */
  readonly isCut: boolean;
}

/** Opens an export: JSON if it begins like that, and else CSV, which is read as it is used. Throws if it is empty. */
export async function openExport(file: string): Promise<ExportRows> {
  const stream = createReadStream(file, 'utf8');
  const pieces = (stream as AsyncIterable<string>)[Symbol.asyncIterator]();
  let head = '';
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
    head += next.value;
    if (/[^\s\ufeff]/.test(head)) break;
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
  const first = await rows.next();
  if (first.done === true) throw new Error('the file is empty');
  const names = first.value.cells.map((cell) => cell.trim());
  const columns = new Map(names.map((name, column) => [name, column]));
  const repeated = names.find((name, column) => name !== '' && columns.get(name) !== column);
  if (repeated !== undefined) throw new Error(`the column ${repeated} is there twice`);
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
