import { constants, promises as files } from 'node:fs';
import { dirname } from 'node:path';
import type { SettlementSpool } from '../domain/ports/settlement-spool.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { readSpoolLines, writeSpoolLine } from './spool-lines.ts';
import { lookUpFileId } from './sqlite/file-ids.ts';

/** The space that is allocated in advance, so that settlements can be written when the disk is full, in bytes. */
const reservedBytes = 4 * 1_024 * 1_024;

/** How far it may grow beyond that, in bytes. */
const maxBytes = 64 * 1_024 * 1_024;

/** How much is overwritten with zeros at a time, in bytes. */
const zeros = Buffer.alloc(64 * 1_024);

/**
 * The file `<database>-settlements` beside the real path of a database: lines, then zeros. Its space is overwritten in
 * place, which a full disk allows on file systems that don't copy on write. It needs no mark of its database: a
 * settlement changes the record with its request's random id, and nothing in a database without such a record.
 */
export function createSettlementSpool(database: string, onFault: ReportFault): SettlementSpool {
  const path = `${database}-settlements`;
  let file: files.FileHandle | null = null;
  /** The offset of the lines of this process, and of those that it read at its start. */
  let start = 0;
  /** The offset of the next line. */
  let end = 0;
  /** Whether the last line has no end: what is appended must not become a part of it. */
  let isTorn = false;
  let lastTurn: Promise<unknown> = Promise.resolve();
  /** Lines whose turn has not come yet share one write. */
  let batch: { readonly lines: string[]; readonly written: Promise<void> } | null = null;

  const inTurn = <Result>(work: (open: files.FileHandle) => Promise<Result>): Promise<Result> => {
    const done = lastTurn.then(async () => {
      if (file === null) throw new Error('the spool of settlements is not open');
      return work(file);
    });
    lastTurn = done.catch(() => {});
    return done;
  };

  const writeLines = async (open: files.FileHandle, lines: readonly string[]): Promise<void> => {
    const bytes = Buffer.from(`${isTorn ? '\n' : ''}${lines.join('')}`);
    if (end + bytes.length > maxBytes) throw new Error('the spool of settlements is full');
    await writeAll(open, bytes, end);
    await open.datasync();
    end += bytes.length;
    isTorn = false;
  };
  /** Finds the end of the lines of a file, and allocates its space on the disk. */
  const enter = async (opened: files.FileHandle): Promise<string> => {
    const bytes = await opened.readFile();
    const firstZero = bytes.indexOf(0);
    end = firstZero === -1 ? bytes.length : firstZero;
    isTorn = end > 0 && bytes[end - 1] !== '\n'.charCodeAt(0);
    await reserve(opened, bytes.length).catch((error: unknown) =>
      onFault('the spool of settlements has no space of its own on the disk', error),
    );
    return bytes.toString('utf8', 0, end);
  };
  /**
   * The file at the path. If the spool was deleted or replaced, that is another file, to which the lines of the old one
   * are copied: an open file that was deleted can still be written, and is gone with the process.
   */
  const current = async (open: files.FileHandle): Promise<files.FileHandle> => {
    const found = await lookUpFileId(path);
    const { dev, ino } = await open.stat({ bigint: true });
    if (found === undefined || found === `${dev}:${ino}`) return open;
    await files.mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const next = await openOrMake(path);
    const held = await readRange(open, start, end);
    const before = { start, end, isTorn };
    try {
      await enter(next);
      // Settlements that were in that file stay for the next start: `clear` does not touch them.
      start = end;
      if (held.length > 0) await writeLines(next, [held]);
    } catch (error) {
      ({ start, end, isTorn } = before);
      await next.close();
      throw error;
    }
    file = next;
    await open.close();
    onFault('the spool of settlements was deleted or replaced: it is written anew', path);
    return next;
  };

  return {
    async open() {
      file = await openOrMake(path).catch((error: unknown) => {
        if (!isFileMissing(error)) throw error;
        onFault('settlements that the database does not take would not outlive this process', error);
        return null;
      });
      return file === null ? { records: [], damaged: 0 } : readSpoolLines(await enter(file));
    },
    append(record) {
      if (batch === null) {
        const lines: string[] = [];
        const written = inTurn(async (open) => {
          if (batch?.lines === lines) batch = null;
          await writeLines(await current(open), lines);
        });
        batch = { lines, written };
      }
      batch.lines.push(writeSpoolLine(record));
      return batch.written;
    },
    clear() {
      // Lines that come after this call must not be written, and emptied, with those before it.
      batch = null;
      return inTurn(async (open) => {
        if (end === start) return;
        const kept = Math.max(start, reservedBytes);
        if (end > kept) await open.truncate(kept);
        await writeZeros(open, start, Math.min(end, kept));
        await open.datasync();
        end = start;
        isTorn = false;
      });
    },
    async close() {
      await lastTurn;
      if (file === null) return;
      try {
        if (end > start) file = await current(file);
      } finally {
        await file.close();
        file = null;
      }
    },
  };
}

/** Fails with ENOENT where there is no file and none can be created. */
function openOrMake(path: string): Promise<files.FileHandle> {
  return files.open(path, constants.O_RDWR).catch((error: unknown) => {
    if (!isFileMissing(error)) throw error;
    return files.open(path, constants.O_RDWR | constants.O_CREAT, 0o600).catch((cause: unknown) => {
      throw Object.assign(new Error('the spool of settlements could not be made', { cause }), {
        code: 'ENOENT',
      });
    });
  });
}

function isFileMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** Allocates the file's space on the disk by writing its blocks: a hole in the file would need room later. */
async function reserve(file: files.FileHandle, sizeBytes: number): Promise<void> {
  if (sizeBytes >= reservedBytes) return;
  await writeZeros(file, sizeBytes, reservedBytes);
  await file.datasync();
}

async function writeZeros(file: files.FileHandle, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += zeros.length)
    await writeAll(file, zeros.subarray(0, Math.min(zeros.length, to - at)), at);
}

/** The lines of a range of a file. The last one gets its end where the file has none. */
async function readRange(file: files.FileHandle, from: number, to: number): Promise<string> {
  const bytes = Buffer.alloc(to - from);
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, from + done);
    if (bytesRead === 0) throw new Error('the spool of settlements was cut short');
    done += bytesRead;
  }
  const text = bytes.toString();
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

/** A single write may stop half way, as where the disk's last block is used up. */
async function writeAll(file: files.FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}
