import { DatabaseSync } from 'node:sqlite';

/** What is wrong with a database file, as far as its structure tells; `null` when it is sound. Changes nothing. */
export function whyDamaged(path: string): string | null {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      const [row] = database.prepare('PRAGMA quick_check(1)').all();
      const found = String(row?.['quick_check']);
      if (found !== 'ok') return found;
      // An empty file is a sound database of no tables.
      database.prepare('SELECT count(*) FROM migrations').get();
      return null;
    } finally {
      database.close();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
