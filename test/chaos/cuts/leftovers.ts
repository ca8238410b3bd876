import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../../support/postgres-server.ts';
import { filesWithWords } from './find-words.ts';
import type { Words } from './numbered-texts.ts';

/** Searches a folder for the words of prompts and answers; what is found is named without them. */
export async function findLeftovers(place: string, folder: string, words: Words): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [kind, word] of Object.entries(words))
    for (const file of await filesWithWords(folder, [word]))
      found.push(`${place}: the text of a${kind === 'answer' ? 'n' : ''} ${kind} is in ${file}`);
  return found;
}

/** Writes each table of a server's database to a file of a folder: long values are compressed in the server's own files. */
export async function dumpTables(server: PostgresServer, folder: string): Promise<void> {
  const tables = await server.sql(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  mkdirSync(folder);
  for (const { name } of tables) {
    const rows = await server.sql(`SELECT t::text AS row FROM ${String(name)} t`);
    writeFileSync(join(folder, String(name)), rows.map(({ row: text }) => String(text)).join('\n'));
  }
}
