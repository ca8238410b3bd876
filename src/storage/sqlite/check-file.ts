import { DatabaseSync } from 'node:sqlite';

/** The first fault in the structure of a database file; `null` when it is sound. Changes nothing. */
export function whyDamaged(path: string): string | null {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      const [row] = database.prepare('PRAGMA quick_check(1)').all();
      const found = String(row?.['quick_check']);
      if (found !== 'ok') return found;
      // An empty file is a sound database without tables.
      database.prepare('SELECT count(*) FROM migrations').get();
      return null;
    } finally {
      database.close();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
