import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { copiedTables } from '../../src/storage/move/table-plan.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import { createTokenUse } from '../../src/storage/token-use.ts';
import { eventually } from '../support/eventually.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { serveFolder } from '../support/served-folder.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';
import { startTextgate } from '../support/textgate-process.ts';

const skipped = postgresAbsence === null ? '' : ` (skipped: ${postgresAbsence})`;
const password = 'correct-horse-battery';

/** How many records make a copy last long enough to be interrupted: some seconds. */
const manyRecords = 20_000;

let folder: string;
let target: TestDatabase;
/** The target's URL with a password, which the server does not ask for. */
let url: string;

async function fill(records: number): Promise<void> {
  const engine = openTestEngine(join(folder, 'textgate.db'));
  await engine.ready;
  await engine.close();
  fillDatabase(join(folder, 'textgate.db'), { keys: 3, records });
}

function start(...args: readonly string[]) {
  return startTextgate(['migrate', ...args], folder);
}

/** Runs the command to its end; nothing that it prints has the password. */
async function migrate(...args: readonly string[]) {
  const finished = await start(...args).finished;
  expect(finished.stdout + finished.stderr).not.toContain(password);
  return finished;
}

/** Runs a command that fails; returns its line on standard error. */
async function failing(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await migrate(...args);
  expect([code, stdout]).toEqual([1, '']);
  return stderr.trimEnd();
}

async function countTables(): Promise<number> {
  const tables = await onServer(
    "SELECT 1 FROM information_schema.tables WHERE table_schema = 'public'",
    target.url,
  );
  return tables.length;
}

/** How many statements of the command the server is working on, or waits behind. */
async function countSessions(state = ''): Promise<number> {
  const found = await onServer(
    `SELECT 1 FROM pg_stat_activity WHERE datname = '${target.name}' AND application_name = 'textgate' ${state}`,
  );
  return found.length;
}

const copying = "AND query LIKE 'INSERT INTO record_rows%'";

describe.skipIf(postgresAbsence !== null)(`textgate migrate${skipped}`, () => {
  beforeEach(async () => {
    folder = makeTemporaryFolder();
    target = await createDatabase();
    onTestFinished(() => target.drop());
    const withPassword = new URL(target.url);
    withPassword.password = password;
    url = withPassword.href;
  });

  test('moves a database, says what to do next, and refuses to do it again', async () => {
    await fill(5);
    const { code, stdout, stderr } = await migrate('sqlite:textgate.db', url);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^postgres:\/\/\S+ has 3 keys and 5 records; all rows were compared, and the ledger balances\n\nSet storage\.url to this database, and start the gateway\.\nKeep textgate\.db as a backup\. Do not start a gateway on it again/,
    );
    expect(await failing('sqlite:textgate.db', url)).toMatch(
      /^textgate: postgres:\/\/\S+ is not empty: it has rows in api_keys\. Name an empty database; nothing was changed$/,
    );
  });

  test('reads the URL from a variable, and prints JSON', async () => {
    await fill(5);
    const args = ['migrate', 'sqlite:textgate.db', '--to-env', 'DATABASE_URL', '--json'];
    const { stdout } = await startTextgate(args, folder, { DATABASE_URL: url }).finished;
    expect(JSON.parse(stdout)).toEqual({
      source: 'sqlite:textgate.db',
      target: target.url,
      rows: {
        ...Object.fromEntries(copiedTables.map((table) => [table, 0])),
        api_keys: 3,
        accounts: 3,
        record_kinds: 1,
        record_rows: 5,
        ledger_rows: 3,
        usage_hours: 3,
      },
      ledger: { accounts: 3, records: 5 },
    });
  });

  test('moves the folds of a ledger, and what counts for limits of tokens', async () => {
    await fill(6);
    const source = openTestEngine(join(folder, 'textgate.db'));
    await source.ready;
    const retention = createRetention(source);
    const beforeMs = Date.UTC(2024, 0, 1);
    const removed = (await retention.listOldest(beforeMs, null, 4)).map(({ requestId }) => requestId);
    await retention.removeRecords(
      removed.map((requestId) => ({ requestId, isLost: false })),
      beforeMs,
    );
    expect(await retention.foldLedgers(setImmediate)).toBeGreaterThan(4);
    const report = (message: string) => expect.unreachable(message);
    await createTokenUse(source, report).add(keyIdOf(0), 5);
    await source.close();
    const { stdout } = await startTextgate(['migrate', 'sqlite:textgate.db', url, '--json'], folder).finished;
    expect(JSON.parse(stdout)).toMatchObject({
      rows: {
        record_rows: 2,
        ledger_rows: 0,
        ledger_folds: 3,
        folded_credits: 3,
        record_removals: 1,
        token_use: 2,
      },
      ledger: { accounts: 3, records: 2 },
    });

    const engine = createPostgresEngine({ url: target.url, clock: systemClock });
    onTestFinished(() => engine.close());
    await engine.ready;
    const used = await createTokenUse(engine, report).used(keyIdOf(0));
    expect(used.map(({ tokens }) => tokens)).toEqual([5, 5]);
    const store = createStore(engine, { nextId: () => 'posting', now: () => beforeMs, report: () => {} });
    const credit = { keyId: keyIdOf(0), nanos: 7, reference: 'first' };
    expect((await store.credit(credit)).result).toBe('other amount');
    expect((await store.credit({ ...credit, reference: 'second' })).result).toBe('booked');
    expect(await createRetention(engine).removedBefore()).toBe(beforeMs);
    expect((await verifyLedger(createLedgerAudit(engine))).faults).toEqual([]);
  });

  test('refuses a file that a gateway uses, and names its process', async () => {
    const { server, environment } = await serveFolder(folder, 'http://127.0.0.1:1/v1');
    expect(await failing('sqlite:data/textgate.db', url)).toContain(
      `data/textgate.db can't be opened: another textgate process is using it (process id ${server.pid}). Stop that process`,
    );
    expect(await countTables()).toBe(0);
    expect((await startTextgate(['health'], folder, environment).finished).code).toBe(0);
  });

  test('refuses what is no database of a gateway, and makes no file', async () => {
    writeFileSync(
      join(folder, 'text.db'),
      'not a database, but a text that is longer than a header '.repeat(5),
    );
    writeFileSync(join(folder, 'empty.db'), '');
    const files = readdirSync(folder);
    for (const [file, problem] of [
      ['sqlite:missing.db', 'textgate: missing.db: no such file or folder (stat)'],
      ['sqlite:.', 'textgate: . is no file'],
      ['sqlite:text.db', "textgate: text.db can't be moved: file is not a database"],
      ['sqlite:empty.db', "textgate: empty.db can't be moved: it is no database of textgate"],
      ['sqlite::memory:', 'textgate: the first argument is no file of a gateway: sqlite:data/textgate.db'],
      [
        'text.db',
        'textgate: the first argument has to be sqlite: and the file of a gateway: sqlite:data/textgate.db',
      ],
    ] as const)
      expect(await failing(file, url)).toBe(problem);
    expect(readdirSync(folder)).toEqual(files);
    expect(await countTables()).toBe(0);
  });

  test('says that it copies from SQLite to PostgreSQL only, and makes no file', async () => {
    await fill(1);
    const files = readdirSync(folder);
    const onlyWay =
      'this command copies from SQLite to PostgreSQL only: textgate migrate sqlite:data/textgate.db postgres://user@host:5432/database';
    for (const [from, to] of [
      [url, 'sqlite:new.db'],
      [url, url],
      [`sqlite:${url}`, url],
    ] as const)
      expect(await failing(from, to)).toBe(
        `textgate: the first argument is a PostgreSQL database, and ${onlyWay}`,
      );
    for (const to of ['sqlite:new.db', 'sqlite:textgate.db'])
      expect(await failing('sqlite:textgate.db', to)).toBe(
        `textgate: the second argument is a SQLite database, and ${onlyWay}`,
      );
    const args = ['migrate', 'sqlite:textgate.db', '--to-env', 'DATABASE_URL'];
    const { code, stderr } = await startTextgate(args, folder, { DATABASE_URL: 'sqlite:new.db' }).finished;
    expect([code, stderr]).toEqual([
      1,
      `textgate: --to-env: DATABASE_URL is a SQLite database, and ${onlyWay}\n`,
    ]);
    expect(readdirSync(folder)).toEqual(files);
    expect(await countTables()).toBe(0);
  });

  test('says that the target is used by something else', async () => {
    await fill(1);
    await onServer('CREATE TABLE accounts (number INTEGER)', target.url);
    expect(await failing('sqlite:textgate.db', url)).toBe(
      `textgate: the tables of the database can't be created: relation "accounts" already exists: name a database in the URL that nothing else uses`,
    );
    expect(await countTables()).toBe(1);
  });

  test('says what is wrong with the target without its password', async () => {
    await fill(1);
    const changed = (change: (changing: URL) => void): string => {
      const changing = new URL(url);
      change(changing);
      return changing.href;
    };
    for (const [to, problem] of [
      [
        changed((changing) => (changing.pathname = '/absent_database')),
        'create the database on the server, or correct its name in the URL',
      ],
      [changed((changing) => (changing.port = '1')), 'correct the host and port in the URL'],
      [`postgres://${password}/b@host/database`, 'has a "/", "?", "#" or "@" that is not encoded'],
      [`mysql://user:${password}@host/database`, 'the URL is no URL of a PostgreSQL database'],
    ] as const)
      expect(await failing('sqlite:textgate.db', to)).toContain(problem);
    expect(await failing('sqlite:textgate.db')).toContain(
      'give the URL of PostgreSQL, as the second argument',
    );
    expect(await failing('sqlite:textgate.db', url, '--to-env', 'A')).toContain('once');
    expect(await failing('sqlite:textgate.db', '--to-env', 'ABSENT')).toContain('--to-env: ');
  });

  test('leaves nothing in the target when it is killed in the middle, and can be run again', async () => {
    await fill(manyRecords);
    const killed = start('sqlite:textgate.db', url);
    await eventually('records are being copied', async () => (await countSessions(copying)) > 0);
    killed.signal('SIGKILL');
    await killed.finished;
    await eventually('the server has ended the session', async () => (await countSessions()) === 0);
    expect(await countTables()).toBe(0);
    expect(existsSync(join(folder, 'textgate.db'))).toBe(true);
    const { code, stderr } = await migrate('sqlite:textgate.db', url);
    expect([code, stderr]).toEqual([0, '']);
  });

  test('fails when the connection is cut in the middle, and leaves nothing in the target', async () => {
    await fill(manyRecords);
    const { hostname, port } = new URL(url);
    const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
    onTestFinished(() => proxy.close());
    const through = new URL(url);
    through.hostname = '127.0.0.1';
    through.port = String(proxy.port);
    const finished = migrate('sqlite:textgate.db', through.href);
    await eventually('records are being copied', async () => (await countSessions(copying)) > 0);
    proxy.reset();
    const { code, stdout, stderr } = await finished;
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^textgate: the connection to postgres:\/\/\S+ was lost, so nothing was kept there: .+\n$/,
    );
    await eventually('the server has ended the session', async () => (await countSessions()) === 0);
    expect(await countTables()).toBe(0);
  });
});
