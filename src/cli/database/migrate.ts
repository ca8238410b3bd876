import { systemClock } from '../../composition/clock.ts';
import { moveDatabase } from '../../composition/storage/move-database.ts';
import type { Moved } from '../../composition/storage/move-database.ts';
import { readVariable } from '../../config/environment.ts';
import { describeUnset } from '../../config/quotable.ts';
import { count } from '../../shared/count.ts';
import { isPostgresUrl } from '../../shared/postgres-url.ts';
import { wrap, maxColumns } from '../output.ts';
import type { Json } from '../output.ts';
import { createProgress } from '../progress.ts';
import { commandUser } from './command-user.ts';

/** The options of `migrate`, as commander names them. */
export interface MigrateOptions extends Json {
  readonly toEnv?: string;
}

/** How the first argument begins. */
const sqlite = 'sqlite:';

/** What the command does, for an operator who asks it for another copy. */
const onlyWay =
  'this command copies from SQLite to PostgreSQL only: textgate migrate sqlite:data/textgate.db postgres://user@host:5432/database';

/** Copies a SQLite database to an empty PostgreSQL database. No message quotes the URLs, which may have a password. */
export async function migrate(
  from: string,
  to: string | undefined,
  { toEnv, json }: MigrateOptions,
): Promise<string> {
  const file = readFile(from);
  const url = readUrl(to, toEnv);
  const progress = createProgress(process.stderr, systemClock);
  const moved = await moveDatabase({
    file,
    url,
    clock: systemClock,
    by: commandUser(),
    onProgress: (text) => progress.show(text),
    writeLog(line) {
      progress.clear();
      process.stderr.write(line);
    },
  }).finally(() => progress.clear());
  return json ? writeJson(file, moved) : describe(file, moved);
}

function readFile(from: string): string {
  const isWritten = from.startsWith(sqlite);
  const file = isWritten ? from.slice(sqlite.length) : from;
  // Before any message that names the file: the URL may have a password.
  if (isPostgresUrl(file)) throw new Error(`the first argument is a PostgreSQL database, and ${onlyWay}`);
  if (!isWritten)
    throw new Error(
      'the first argument has to be sqlite: and the file of a gateway: sqlite:data/textgate.db',
    );
  if (file === '' || file === ':memory:')
    throw new Error('the first argument is no file of a gateway: sqlite:data/textgate.db');
  return file;
}

function readUrl(to: string | undefined, toEnv: string | undefined): string {
  if (to !== undefined && toEnv !== undefined)
    throw new Error('give the URL of PostgreSQL once: as the argument or with --to-env');
  if (to?.startsWith(sqlite) === true)
    throw new Error(`the second argument is a SQLite database, and ${onlyWay}`);
  if (to !== undefined) return to;
  if (toEnv === undefined)
    throw new Error('give the URL of PostgreSQL, as the second argument or with --to-env');
  const url = readVariable(process.env, toEnv);
  if (url === undefined) throw new Error(`--to-env: ${describeUnset(toEnv, process.env)}`);
  if (url.startsWith(sqlite)) throw new Error(`--to-env: ${toEnv} is a SQLite database, and ${onlyWay}`);
  return url;
}

function writeJson(file: string, { target, rows, ledger }: Moved): string {
  return JSON.stringify({
    source: sqlite + file,
    target,
    rows: Object.fromEntries(rows),
    ledger: { accounts: ledger.accounts, records: ledger.records },
  });
}

function describe(file: string, { target, rows }: Moved): string {
  const rowsOf = (table: string): number => rows.get(table) ?? 0;
  const next = [
    `Set storage.url to this database, and start the gateway.`,
    `Keep ${file} as a backup. Do not start a gateway on it again: there would be two ledgers, and each of them would allow a key its whole balance.`,
  ];
  return [
    `${target} has ${count(rowsOf('api_keys'), 'key')} and ${count(rowsOf('record_rows'), 'record')}; all rows were compared, and the ledger balances`,
    '',
    ...next.flatMap((line) => wrap(line, maxColumns)),
  ].join('\n');
}
