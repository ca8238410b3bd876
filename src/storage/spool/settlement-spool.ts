import { constants, promises as files } from 'node:fs';
import { dirname } from 'node:path';
import type { SettlementSpool } from '../../domain/ports/records.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { lookUpFile } from '../database-files.ts';
import { readSpoolLines, writeSpoolLine } from './spool-lines.ts';

/**
 * A spool in one file. Its space is overwritten in place, which a full disk allows on file systems that don't copy on
 * write. It has no mark of its database: a settlement is of one request and of one key. Beside another database it is made
 * only if that one has the key, as it may if the config declares it.
 */
export function createSettlementSpool(path: string, onFault: ReportFault): SettlementSpool {
  let file: SpoolFile | null = null;
  let lastTurn: Promise<unknown> = Promise.resolve();
  /** Lines whose turn has not come yet share one write. */
  let batch: { readonly lines: string[]; readonly written: Promise<void> } | null = null;

  const inTurn = <Result>(work: (open: SpoolFile) => Promise<Result>): Promise<Result> => {
    const done = lastTurn.then(async () => {
      if (file === null) throw new Error('the spool of settlements is not open');
      return work(file);
    });
    lastTurn = done.catch(() => {});
    return done;
  };

  return {
    async open() {
      try {
        const opened = await SpoolFile.open(path, onFault);
        file = opened.file;
        return readSpoolLines(opened.text, path);
      } catch (error) {
        await file?.abandon();
        file = null;
        if (!isFileMissing(error)) throw error;
        onFault('settlements that the database does not take would not outlive this process', error);
        return { records: [], damaged: 0 };
      }
    },
    append(record) {
      if (batch === null) {
        const lines: string[] = [];
        const written = inTurn(async (open) => {
          if (batch?.lines === lines) batch = null;
          await open.append(lines);
        });
        batch = { lines, written };
      }
      batch.lines.push(writeSpoolLine(record));
      return batch.written;
    },
    clear() {
      // Lines that come after this call must not be written, and removed, with those before it.
      batch = null;
      return inTurn((open) => open.empty());
    },
    async close() {
      await lastTurn;
      const closing = file;
      file = null;
      await closing?.close();
    },
  };
}

/** The space that is allocated in advance, so that settlements can be written when the disk is full, in bytes. */
const reservedBytes = 4 * 1_024 * 1_024;

/** The size that it may reach, in bytes. */
const maxBytes = 64 * 1_024 * 1_024;

/** The piece in which a file is overwritten with zeros, in bytes. */
const zeros = Buffer.alloc(64 * 1_024);

/** A file of lines, then zeros. Its space is overwritten in place. Its calls must be made one after the other. */
class SpoolFile {
  readonly #path: string;
  readonly #onFault: ReportFault;
  #file: files.FileHandle;
  /** The offset of the lines of this process, and of those that it read at its start. */
  #start = 0;
  /** The offset of the next line. */
  #end = 0;
  /** Whether the last line has no end: what is appended must not become a part of it. */
  #isTorn = false;

  private constructor(path: string, onFault: ReportFault, file: files.FileHandle) {
    this.#path = path;
    this.#onFault = onFault;
    this.#file = file;
  }

  /**
   * Opens the file, with the lines that it holds. Fails with ENOENT where there is no file and none can be created.
   */
  static async open(
    path: string,
    onFault: ReportFault,
  ): Promise<{ readonly file: SpoolFile; readonly text: string }> {
    const file = new SpoolFile(path, onFault, await openOrCreate(path));
    return { file, text: await file.#enter(file.#file) };
  }

  /** Appends lines, and resolves once they are on the disk. */
  async append(lines: readonly string[]): Promise<void> {
    await this.#follow();
    await this.#write(this.#file, lines);
  }

  /** Removes the lines of this process, and those that it read at its start. */
  async empty(): Promise<void> {
    if (this.#end === this.#start) return;
    const keptBytes = Math.max(this.#start, reservedBytes);
    if (this.#end > keptBytes) await this.#file.truncate(keptBytes);
    await writeZeros(this.#file, this.#start, Math.min(this.#end, keptBytes));
    await this.#file.datasync();
    this.#end = this.#start;
    this.#isTorn = false;
  }

  /** Closes the file. Rejects when its lines are not in the file that the next process would read. */
  async close(): Promise<void> {
    try {
      if (this.#end > this.#start) await this.#follow();
    } finally {
      await this.#file.close();
    }
  }

  /** Closes the file as it is. */
  abandon(): Promise<void> {
    return this.#file.close();
  }

  async #write(file: files.FileHandle, lines: readonly string[]): Promise<void> {
    const bytes = Buffer.from(`${this.#isTorn ? '\n' : ''}${lines.join('')}`);
    if (this.#end + bytes.length > maxBytes) throw new Error('the spool of settlements is full');
    await writeAll(file, bytes, this.#end);
    await file.datasync();
    this.#end += bytes.length;
    this.#isTorn = false;
  }

  /** Finds the end of the lines of a file, and allocates its space on the disk. */
  async #enter(file: files.FileHandle): Promise<string> {
    const bytes = await file.readFile();
    const firstZero = bytes.indexOf(0);
    this.#end = firstZero === -1 ? bytes.length : firstZero;
    this.#isTorn = this.#end > 0 && bytes[this.#end - 1] !== '\n'.charCodeAt(0);
    await reserve(file, bytes.length).catch((error: unknown) =>
      this.#onFault('the spool of settlements has no space of its own on the disk', error),
    );
    return bytes.toString('utf8', 0, this.#end);
  }

  /**
   * Goes on in the file at the path. If the spool was deleted or replaced, that is another file, to which the lines are
   * copied: an open file that was deleted can still be written, and is gone with the process.
   */
  async #follow(): Promise<void> {
    const old = this.#file;
    const found = await lookUpFile(this.#path);
    const { dev, ino } = await old.stat({ bigint: true });
    if (found === undefined || found?.id === `${dev}:${ino}`) return;
    await files.mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const next = await openOrCreate(this.#path);
    const lines = await readRange(old, this.#start, this.#end);
    const before = [this.#start, this.#end, this.#isTorn] as const;
    try {
      await this.#enter(next);
      // Settlements that were in that file stay for the next start: `empty` does not touch them.
      this.#start = this.#end;
      if (lines.length > 0) await this.#write(next, [lines]);
    } catch (error) {
      [this.#start, this.#end, this.#isTorn] = before;
      await next.close();
      throw error;
    }
    this.#file = next;
    await old.close();
    this.#onFault('the spool of settlements was deleted or replaced: it is written anew', this.#path);
  }
}

/** Whether a file could neither be found nor created. */
function isFileMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

function openOrCreate(path: string): Promise<files.FileHandle> {
  return files.open(path, constants.O_RDWR).catch((error: unknown) => {
    if (!isFileMissing(error)) throw error;
    return files.open(path, constants.O_RDWR | constants.O_CREAT, 0o600).catch((cause: unknown) => {
      throw Object.assign(new Error('the spool of settlements could not be made', { cause }), {
        code: 'ENOENT',
      });
    });
  });
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

/** Reads the lines of a range of a file. The last one gets its end where the file has none. */
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
