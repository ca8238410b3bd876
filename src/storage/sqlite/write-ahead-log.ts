import { copyFileSync, existsSync, rmSync, statSync, truncateSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { filesOf } from './file-ids.ts';
import type { FileChange, MainFile } from './main-file.ts';

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
    return (statSync(filesOf(this.#path).log, { throwIfNoEntry: false })?.size ?? 0) > keptBytes;
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
    const aside = `${log}.overwritten-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
    if (existsSync(log)) {
      tryToCopy(log, aside);
      truncateSync(log);
    }
    try {
      this.close();
    } catch {
      // It could not fold the log.
    }
    for (const file of [log, `${this.#path}-shm`]) rmSync(file, { force: true });
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
