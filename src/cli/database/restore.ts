import { resolve } from 'node:path';
import { readDatabaseUrl } from '../../config/database-url.ts';
import { readVariable } from '../../config/environment.ts';
import { count } from '../../shared/count.ts';
import { isPostgresUrl } from '../../shared/postgres-url.ts';
import { restoreDatabase } from '../../storage/sqlite/restore.ts';
import { wrap, maxColumns } from '../output.ts';
import { commandUser } from './command-user.ts';

/** How the URL of a SQLite database begins. */
const sqlite = 'sqlite:';

/** The variables that name a database, or the config that does. */
const namingVariables = ['TEXTGATE_CONFIG', 'TEXTGATE_STORAGE_URL'] as const;

/** The options of `restore`, as commander names them. */
export interface RestoreOptions {
  readonly to?: string;
  readonly config?: string;
  readonly allowMigrated?: true;
}

/** Puts a backup in the place of the database of a stopped gateway. */
export async function restore(backup: string, options: RestoreOptions): Promise<string> {
  const database = options.to?.replace(sqlite, '') ?? (await findDatabase(options.config));
  const { keys, records, kept } = await restoreDatabase(backup, database, {
    allowMigrated: options.allowMigrated === true,
    by: commandUser(),
  });
  const namedBy = [
    options.to,
    options.config,
    ...namingVariables.map((name) => readVariable(process.env, name)),
  ];
  const next = [
    ...(namedBy.some((name) => name !== undefined)
      ? []
      : [
          `Neither an option nor ${namingVariables.join(' or ')} names the database: it is the usual one, ${resolve(database)}. Another one is named with --to.`,
        ]),
    ...(kept === null ? [] : [`The file that was there is kept as ${kept}.`]),
    'Start the gateway, and run textgate ledger verify. What was recorded after the backup is gone.',
  ];
  return [
    `${database} is restored from ${backup === '-' ? 'the standard input' : backup}: ${count(keys, 'key')}, ${count(records, 'record')}, checked`,
    ...next.flatMap((line) => wrap(line, maxColumns)),
  ].join('\n');
}

/** The database that a gateway with the same config and environment would use. */
async function findDatabase(option?: string): Promise<string> {
  const { loadStorageSection } = await import('../../config/load.ts');
  const file = option ?? readVariable(process.env, 'TEXTGATE_CONFIG');
  const url = readDatabaseUrl(loadStorageSection(file ?? null, process.env).url);
  if (isPostgresUrl(url))
    throw new Error(
      'the database is on a PostgreSQL server: restore it with pg_restore, or give a file with --to',
    );
  const database = url.slice(sqlite.length);
  if (database === ':memory:') throw new Error('the database is in memory: it has no file to restore');
  return database;
}
