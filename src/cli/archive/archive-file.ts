import { createReadStream, existsSync, rmSync } from 'node:fs';
import { parseUsd } from '../../shared/money.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { moveIntoPlace, saveFile } from '../database/save-file.ts';

/** The forms of an archive. */
export type ArchiveForm = 'csv' | 'json';

/** What a line of an archive says of its record. */
export interface ArchivedRecord {
  readonly requestId: string;
  readonly outcome: string;
  readonly chargeNanos: number;
}

/** What an archive amounts to: compared before anything is removed. */
export interface ArchiveSum {
  readonly records: number;
  /** The sum of all charges, in nano-USD. */
  readonly chargeNanos: bigint;
}

/** Adds up records as they pass. */
export function createSum() {
  let [records, chargeNanos] = [0, 0n];
  return {
    add: (record: ArchivedRecord): void => {
      records++;
      chargeNanos += BigInt(record.chargeNanos);
    },
    sum: (): ArchiveSum => ({ records, chargeNanos }),
  };
}

/**
 * Writes an archive under its name only when it is whole: a file with that name has every record, is on the disk, and was
 * read again with the same sum. What an earlier process left unfinished is written anew, as nothing of it was removed.
 */
export async function writeArchive(
  content: AsyncIterable<Uint8Array>,
  file: string,
  form: ArchiveForm,
): Promise<void> {
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  const received = createSum();
  await saveFile(countLines(content, form, received.add), partial);
  const written = createSum();
  for await (const record of readArchive(partial, form)) written.add(record);
  const [sent, kept] = [received.sum(), written.sum()];
  if (sent.records !== kept.records || sent.chargeNanos !== kept.chargeNanos)
    throw new Error(`${partial} does not hold what the gateway sent; nothing was removed`);
  if (existsSync(file)) throw new Error(`${file} was created in the meantime: choose another file`);
  moveIntoPlace(partial, file);
}

/** Reads an archive a record at a time. Throws for a line that is none. */
export async function* readArchive(file: string, form: ArchiveForm): AsyncGenerator<ArchivedRecord> {
  const takeRecords = createRecordReader(form);
  for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) yield* takeRecords(piece);
  takeRecords(null);
}

/** Passes bytes on, and reads the records in them. */
async function* countLines(
  content: AsyncIterable<Uint8Array>,
  form: ArchiveForm,
  add: (record: ArchivedRecord) => void,
): AsyncGenerator<Uint8Array> {
  const takeRecords = createRecordReader(form);
  for await (const piece of content) {
    takeRecords(piece).forEach(add);
    yield piece;
  }
  takeRecords(null);
}

/**
 * Returns a function that reads the records in the next bytes of an archive; `null` is its end. A line ends with a line feed
 * and with nothing else: an upstream's words in it may have U+2028, at which other readers of lines cut, too. Throws for a
 * line that is no record, and at the end if the last line has none.
 */
function createRecordReader(form: ArchiveForm): (piece: Uint8Array | null) => readonly ArchivedRecord[] {
  const read = createLineReader(form);
  const decoder = new TextDecoder();
  let rest = '';
  return (piece) => {
    if (piece === null) {
      if (rest !== '') throw new Error('the last line of the archive has no end');
      return [];
    }
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    return lines.map(read).filter((record) => record !== null);
  };
}

/** Returns a function that reads the lines of an archive in turn; `null` for the header of CSV. */
function createLineReader(form: ArchiveForm): (line: string) => ArchivedRecord | null {
  if (form === 'json')
    return (line) => {
      const { request_id, outcome, charge } = (parseJson(line) ?? {}) as Readonly<Record<string, string>>;
      return recordOf(request_id, outcome, charge);
    };
  let columns: readonly string[] | null = null;
  return (line) => {
    const cells = splitCsv(line.trimEnd());
    if (columns === null) {
      columns = cells;
      return null;
    }
    const cell = (name: string): string | undefined => cells[columns?.indexOf(name) ?? -1];
    return recordOf(cell('request_id'), cell('outcome'), cell('charge'));
  };
}

function recordOf(requestId?: string, outcome?: string, charge?: string): ArchivedRecord {
  const chargeNanos = parseUsd(charge ?? '');
  if (requestId === undefined || outcome === undefined || chargeNanos === null)
    throw new Error('a line of the archive is no record: is it in the other form (--csv or --json)?');
  return { requestId, outcome, chargeNanos };
}

/** The cells of a line of CSV: those with a comma or a quote in them are quoted. */
function splitCsv(line: string): readonly string[] {
  return Array.from(line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g), ([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'),
  );
}
