import { constants, fstatSync, ftruncateSync } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/**
 * How many of the last lines of a file may be of records that are still in the database: those of a step that was written
 * and not removed. More than a step has.
 */
const maxUnremovedLines = 2_000;

/** How much of a file is read at a time to find its last lines, in bytes. */
const tailBytes = 1_048_576;

const lineFeed = 0x0a;

/** What belongs to a day: a time in milliseconds since 1970. */
interface Dated {
  readonly createdAtMs: number;
}

/**
 * An archive of records, or of others, in a folder: a file of JSON lines for each day (UTC) on which they were begun, readable
 * for its owner alone.
 * Nothing that is whole in it is ever written over, also where two processes write to it at once. A line that a dying process
 * left unfinished is cut off: its record is still in the database. A line that is there already is not written again; a
 * record whose line differs has changed since, as one that was closed as lost and then settled: its later line is the true
 * one.
 */
export function createArchiveFolder<Entry extends Dated>(
  folder: string,
  writeLine: (entry: Entry) => string,
  name = 'records',
) {
  return {
    async append(records: readonly Entry[]): Promise<void> {
      await makeFolder(folder);
      for (const [day, some] of Map.groupBy(records, dayOf))
        await appendLines(join(folder, `${name}-${day}.jsonl`), () => some.map((entry) => writeLine(entry)));
      // Names of new files are on the disk only with their folder.
      await syncFolder(folder);
    },
  };
}

/** Creates a folder, and the folders above it, so that a power failure does not forget them. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = resolve(folder); ; made = dirname(made)) {
    await syncFolder(dirname(made));
    if (made === resolve(first)) return;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

function dayOf({ createdAtMs }: Dated): string {
  return new Date(createdAtMs).toISOString().slice(0, 10);
}

async function appendLines(path: string, write: () => readonly string[]): Promise<void> {
  // In this mode the system writes behind whatever is there by then: another process may have written since the file was read.
  const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o600);
  try {
    const { size: found, end, lines: last } = await readTail(file);
    const missing = write().filter((line) => !last.has(line));
    const bytes = Buffer.from(missing.map((line) => `${line}\n`).join(''));
    const wasChanged = (): Error => new Error(`${path} was changed by something else while it was written`);
    if (end < found) {
      // Without a wait in between: what another process has made whole meanwhile must not be cut off.
      if (fstatSync(file.fd).size !== found) throw wasChanged();
      ftruncateSync(file.fd, end);
    }
    for (let at = 0; at < bytes.length;)
      at += (await file.write(bytes, at, bytes.length - at, null)).bytesWritten;
    await file.sync();
    const { size } = await file.stat();
    const { bytesRead, buffer } = await file.read(Buffer.alloc(bytes.length), 0, bytes.length, end);
    if (size !== end + bytes.length || bytesRead !== bytes.length || !buffer.equals(bytes))
      throw wasChanged();
  } finally {
    await file.close();
  }
}

/** The size of a file, the end of its last whole line, and its last lines. */
async function readTail(
  file: FileHandle,
): Promise<{ readonly size: number; readonly end: number; readonly lines: ReadonlySet<string> }> {
  const { size } = await file.stat();
  let start = size;
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
  // Unless the file begins here, the first line lacks its beginning: it equals no other.
  return { size, end: start + end, lines: new Set(tail.toString('utf8', 0, end).split('\n')) };
}
