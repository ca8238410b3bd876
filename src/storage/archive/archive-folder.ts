import { constants } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConsumptionRecord } from '../../domain/consumption.ts';
import type { RecordArchive } from '../../domain/ports/retention.ts';

/**
 * How many of the last lines of a file may be of records that are still in the database: those of a step that was written
 * and not removed. More than a step has.
 */
const maxUnremovedLines = 2_000;

/** How much of a file is read at a time to find its last lines, in bytes. */
const tailBytes = 1_048_576;

const lineFeed = 0x0a;

/**
 * An archive in a folder: a file of JSON lines for each day (UTC) on which records were begun, readable for its owner alone.
 * Nothing that is whole in it is ever written over. A line that a dying process left unfinished is cut off: its record is
 * still in the database. Records whose lines are there already are not written again.
 */
export function createArchiveFolder(
  folder: string,
  writeLine: (record: ConsumptionRecord) => string,
): RecordArchive {
  return {
    async append(records) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const [day, some] of Map.groupBy(records, dayOf)) {
        const lines = some.map((record) => ({ id: record.requestId, line: `${writeLine(record)}\n` }));
        await appendLines(join(folder, `records-${day}.jsonl`), lines);
      }
      // Names of new files are on the disk only with their folder.
      const opened = await open(folder, 'r');
      try {
        await opened.sync();
      } finally {
        await opened.close();
      }
    },
  };
}

function dayOf({ createdAtMs }: ConsumptionRecord): string {
  return new Date(createdAtMs).toISOString().slice(0, 10);
}

async function appendLines(
  path: string,
  lines: readonly { readonly id: string; readonly line: string }[],
): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const { end, ids } = await readTail(file);
    await file.truncate(end);
    const missing = lines.filter(({ id }) => !ids.has(id));
    const bytes = Buffer.from(missing.map(({ line }) => line).join(''));
    for (let at = 0; at < bytes.length;)
      at += (await file.write(bytes, at, bytes.length - at, end + at)).bytesWritten;
    await file.sync();
    const { size } = await file.stat();
    const { bytesRead, buffer } = await file.read(Buffer.alloc(bytes.length), 0, bytes.length, end);
    if (size !== end + bytes.length || bytesRead !== bytes.length || !buffer.equals(bytes))
      throw new Error(`${path} was changed by something else while it was written`);
  } finally {
    await file.close();
  }
}

/** The end of the last whole line of a file, and the ids of its last lines. */
async function readTail(
  file: FileHandle,
): Promise<{ readonly end: number; readonly ids: ReadonlySet<string> }> {
  let start = (await file.stat()).size;
  let tail = Buffer.alloc(0);
  let feeds = 0;
  while (start > 0 && feeds <= maxUnremovedLines) {
    const length = Math.min(tailBytes, start);
    start -= length;
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, start);
    feeds += buffer.reduce((count, byte) => count + (byte === lineFeed ? 1 : 0), 0);
    tail = Buffer.concat([buffer, tail]);
  }
  const end = tail.lastIndexOf(lineFeed) + 1;
  // Unless the file begins here, the first line may lack its beginning.
  const lines = tail
    .toString('utf8', 0, end)
    .split('\n')
    .slice(start === 0 ? 0 : 1, -1);
  return { end: start + end, ids: new Set(lines.map(idOf)) };
}

function idOf(line: string): string {
  return String((JSON.parse(line) as { readonly request_id?: unknown }).request_id);
}
