import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  rmSync,
  truncateSync,
} from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { filesOf, removeLog, sizeOf, stampOf } from '../database-files.ts';

/** The number of pages in the log at which it is folded into the database. */
const foldedPages = 1_000;

/** The bounds of how many units are run between two times, and how many the first time. */
const minUnits = 20;
const firstUnits = 100;
const maxUnits = 5_000;

/** The size to which the file of the log shrinks when it begins anew, and from which it is folded at every look, in bytes. */
export const keptBytes = 16_777_216;

/**
 * The write-ahead log of an open database, which is folded into the database's file here rather than by SQLite on its own:
 * so every other change of that file is known as one before the log is folded into it, which would make a mixture of both.
 */
export class WriteAheadLog {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #file: MainFile;
  /** Units since the last time at which it was due to be folded, those between the two times before, and when it is due again. */
  #units = 0;
  #countedUnits = 0;
  #dueUnits = firstUnits;
  #pages = 0;
  #isCopied = false;

  /** `file` is that of the database, opened before the database was. */
  constructor(database: DatabaseSync, path: string, file: MainFile) {
    this.#database = database;
    this.#path = path;
    this.#file = file;
    database.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${keptBytes}`);
    file.accept();
  }

  /** Counts units that were committed; `true` when the log is to be folded. */
  isDueAfter(units: number): boolean {
    this.#units += units;
    if (this.#units < this.#dueUnits) return false;
    this.#countedUnits += this.#units;
    this.#units = 0;
    return true;
  }

  /** Whether there is so much in the log that it is folded without waiting for units. */
  get isLong(): boolean {
    return (sizeOf(filesOf(this.#path).log) ?? 0) > keptBytes;
  }

  /**
   * What something else did to the database's file. While a backup is made, its thread folds the log, too, and a file that
   * was only written counts as unchanged.
   */
  change(): FileChange {
    const change = this.#file.change(() => {
      const row = this.#database.prepare('PRAGMA schema_version').get();
      return Number(row?.['schema_version']);
    });
    return this.#isCopied && change === 'written' ? 'none' : change;
  }

  /** Folds the log as far as no reader needs it. The file must not have been changed. */
  fold(): void {
    // The backup reads a state that is not folded yet, and folds it at its end.
    if (this.#isCopied) return;
    try {
      const row = this.#database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
      const pages = Number(row?.['log'] ?? 0);
      // It is the whole log, which goes on where a reader kept it from beginning anew.
      const grown = pages >= this.#pages ? pages - this.#pages : pages;
      this.#pages = pages;
      const units = this.#countedUnits + this.#units;
      if (grown > 0 && units > 0) {
        const due = Math.round((units * foldedPages) / grown);
        this.#dueUnits = Math.min(maxUnits, Math.max(minUnits, due));
      }
      this.#countedUnits = 0;
      this.#units = 0;
    } catch {
      // As on a full disk: the log has all of it, and is folded later.
    }
    this.#file.accept();
  }

  /** Takes the file as it is now. */
  accept(): void {
    this.#file.accept();
  }

  /** Says that a backup begins or has ended. */
  copied(isCopied: boolean): void {
    this.#isCopied = isCopied;
    if (!isCopied && this.change() === 'written') this.#file.accept();
  }

  /** Closes the database, whose log is folded, and its file. */
  close(): void {
    try {
      this.#database.close();
    } finally {
      this.#file.close();
    }
  }

  /**
   * Closes the database without folding the log: it belongs to no file any more, and would make a mixture of the one that is
   * there now. SQLite would fold it at the close, so it finds an empty one. The log is kept beside it.
   */
  abandon(): void {
    const { log } = filesOf(this.#path);
    const aside = `${log}.overwritten-${stampOf(new Date())}`;
    if (existsSync(log)) {
      tryToCopy(log, aside);
      truncateSync(log);
    }
    try {
      this.close();
    } catch {
      // It could not fold the log.
    }
    removeLog(this.#path);
  }
}

/** Copies a file if there is space for it. */
function tryToCopy(file: string, target: string): void {
  try {
    copyFileSync(file, target);
  } catch {
    rmSync(target, { force: true });
  }
}

/** The length of the header of a database file, in bytes, and where its fields are (https://sqlite.org/fileformat.html). */
const headerBytes = 100;
const changeCounterAt = 24;
const pagesAt = 28;
const schemaCookieAt = 40;

/** What something else did to a database file since this process wrote it last. */
export type FileChange =
  | 'none'
  /** It was written, and may still be the same database: another program may have folded the log into it. */
  | 'written'
  /** It has become another database, or none. */
  | 'overwritten';

interface Look {
  readonly writtenNs: bigint;
  readonly size: bigint;
  readonly header: Buffer;
}

/**
 * The file of an open database, which SQLite writes only when it folds the log into it: whatever else changes the file, such
 * as a copy over it, is noticed by its time and size, and judged by its header. Its descriptor is kept as long as the database
 * is open, because closing one releases the locks that this process has on the file.
 */
export class MainFile {
  readonly #file: number;
  #expected: Look;

  constructor(path: string) {
    this.#file = openSync(path, 'r');
    this.#expected = this.#look();
  }

  /** Takes the file as it is now. */
  accept(): void {
    this.#expected = this.#look();
  }

  /** What was done to it. `schemaVersion` reads that of the open database. */
  change(schemaVersion: () => number): FileChange {
    const { mtimeNs, size } = fstatSync(this.#file, { bigint: true });
    const before = this.#expected;
    if (mtimeNs === before.writtenNs && size === before.size) return 'none';
    const { header } = this.#look();
    if (size >= before.size && header.equals(before.header)) return 'written';
    const [was, is] = [fieldsOf(before.header), fieldsOf(header)];
    // A backup has another cookie, and begins to count anew. A file that is folded into grows, unless another program has
    // rebuilt all of it, which alters the cookie that the open database has as well.
    if (is.changeCounter < was.changeCounter) return 'overwritten';
    if (is.schemaCookie === was.schemaCookie) {
      const isGrown = is.pages >= was.pages && size >= before.size;
      return isGrown ? 'written' : 'overwritten';
    }
    return is.schemaCookie === schemaVersion() ? 'written' : 'overwritten';
  }

  close(): void {
    closeSync(this.#file);
  }

  #look(): Look {
    const header = Buffer.alloc(headerBytes);
    const { mtimeNs, size } = fstatSync(this.#file, { bigint: true });
    readSync(this.#file, header, 0, headerBytes, 0);
    return { writtenNs: mtimeNs, size, header };
  }
}

function fieldsOf(header: Buffer): Readonly<Record<'changeCounter' | 'pages' | 'schemaCookie', number>> {
  return {
    changeCounter: header.readUInt32BE(changeCounterAt),
    pages: header.readUInt32BE(pagesAt),
    schemaCookie: header.readUInt32BE(schemaCookieAt),
  };
}
