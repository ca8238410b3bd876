/** A text of the schema, as an engine has it. */
export type Part = (engine: 'sqlite' | 'postgres') => string;

/** Writes SQL for both engines. Comments are left out: to reword one must not change a step. No text has two hyphens. */
export function sql(texts: TemplateStringsArray, ...parts: readonly (Part | string)[]): Part {
  return (engine) =>
    String.raw({ raw: texts }, ...parts.map((part) => (typeof part === 'string' ? part : part(engine))))
      .replaceAll(/ *--.*$/gm, '')
      .replaceAll(/^\s*\n/gm, '');
}

/** A part that the two engines write in their own ways. */
export function either(inSqlite: string, inPostgres: string): Part {
  return (engine) => (engine === 'sqlite' ? inSqlite : inPostgres);
}

/** A part that only SQLite has. */
export function sqlite(part: string): Part {
  return either(part, '');
}

/** A part that only PostgreSQL has. */
export function postgres(part: string): Part {
  return either('', part);
}

/** The type of ids, names and other texts that are compared by their bytes. */
export const id = either('TEXT', 'TEXT COLLATE "C"');

/** Behind a table whose rows SQLite keeps in the index of their primary key. */
export const byKey = sqlite(' WITHOUT ROWID');

/**
 * Behind a table of which PostgreSQL fills pages so far, in percent: a row that is changed needs no new entry in an index
 * where its page has room for its next version.
 */
export function filled(percent: number): Part {
  return postgres(` WITH (fillfactor = ${percent})`);
}
