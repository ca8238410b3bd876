import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

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
