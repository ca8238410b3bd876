import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/composition/clock.ts';
import { moveDatabase } from '../../../src/composition/storage/move-database.ts';
import { nextId } from '../../../src/composition/next-id.ts';
import type { ConsumptionRecord, RecordFilter } from '../../../src/domain/money/consumption.ts';
import { verifyLedger } from '../../../src/operations/verify-ledger.ts';
import { compareStatements } from '../../../src/domain/statements/check-statement.ts';
import { readStatement } from '../../../src/domain/statements/read-statement.ts';
import { createAuditTrail } from '../../../src/storage/audit/audit-lines.ts';
import { createLedgerAudit } from '../../../src/storage/ledger/ledger-audit.ts';
import type { Engine } from '../../../src/storage/engine.ts';
import { createPostgresEngine } from '../../../src/storage/postgres/engine.ts';
import type { Store } from '../../../src/storage/store.ts';
import { beginningOf, payingKey } from '../../support/stored-rows.ts';
import { statementsOver } from '../../support/statement-tools.ts';
import { requestIdFor } from '../../support/request-ids.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { openTestEngine } from '../../support/test-engine.ts';
import { createDatabase, onServer, postgresAbsence } from '../../support/test-postgres.ts';
import type { TestDatabase } from '../../support/test-postgres.ts';
import {
  ended,
  leaveUsedDatabase,
  leftOpen,
  oddName,
  opened,
  storeOver,
} from '../../support/used-database.ts';

const skipped = postgresAbsence === null ? '' : ` (skipped: ${postgresAbsence})`;

/** When statements are made, in milliseconds since 1970. */
const startedMs = 1_900_000_000_000;

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  return database;
}

/** A database that was used, from which every test copies its own. */
const used = join(mkdtempSync(join(tmpdir(), 'textgate-test-')), 'textgate.db');
beforeAll(() => leaveUsedDatabase(used));
afterAll(() => rmSync(dirname(used), { recursive: true }));

function usedFile(): string {
  const file = join(makeTemporaryFolder(), 'textgate.db');
  for (const end of ['', '-settlements']) copyFileSync(used + end, file + end);
  return file;
}

/** Moves a file; resolves with what was moved and what a start would have logged. */
async function move(file: string, url: string) {
  let log = '';
  const moved = await moveDatabase({
    file,
    url,
    clock: systemClock,
    by: { way: 'cli', name: 'ada', address: null },
    onProgress: () => {},
    writeLog: (line) => void (log += line),
  });
  return { ...moved, log };
}

/** Changes a file as no version does. */
function change(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

/** All rows of a file. */
function dump(file: string) {
  const database = new DatabaseSync(file, { readOnly: true });
  // The mark of a move says to where it was.
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'moved_to' ORDER BY name")
    .all();
  const rows = tables.map(({ name }) => [name, database.prepare(`SELECT * FROM ${String(name)}`).all()]);
  database.close();
  return rows;
}

/** The tables of a database. */
async function tablesOf({ url }: TestDatabase): Promise<readonly unknown[]> {
  return onServer("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'", url);
}

function usePostgres(url: string): Engine {
  const engine = createPostgresEngine({ url, clock: systemClock });
  onTestFinished(() => engine.close());
  return engine;
}

function useSqlite(file: string): Engine {
  const engine = openTestEngine(file, { allowMigrated: true });
  onTestFinished(() => engine.close());
  return engine;
}

/** The tail of a request's id with a short name. */
const tailOf = (name: string): string => requestIdFor(name).slice(-20);

const filters: readonly RecordFilter[] = [
  {},
  { keyId: 'key_a' },
  { keyId: 'key_free', model: 'm', from: 100, to: 400 },
];

/** Everything that a gateway says of its keys and records. */
async function describeStore(store: Store) {
  const keys = (await store.listKeys({}, 100, null))?.keys ?? [];
  const secrets = ['a', 'a_2', 'free', 'poor', 'gone', 'declared'];
  return {
    keys,
    accounts: await store.accounts(keys.map(({ id }) => id)),
    bySecret: await Promise.all(secrets.map((secret) => store.findKeyByHash(`hash_${secret}`))),
    records: await Promise.all(filters.map((filter) => allRecords(store, filter))),
  };
}

async function allRecords(store: Store, filter: RecordFilter): Promise<readonly ConsumptionRecord[]> {
  const found: ConsumptionRecord[] = [];
  for (let before: string | null = null; ;) {
    const page = await store.listRecords(filter, 97, before);
    found.push(...(page?.records ?? []));
    before = page?.next ?? null;
    if (before === null) return found;
  }
}

describe.skipIf(postgresAbsence !== null)(`a move from SQLite to PostgreSQL${skipped}`, () => {
  test('keeps keys, secrets, balances, records and the ledger, and settles first what the last process left', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    const { rows, log } = await move(file, target.url);
    expect(log).toContain('closed requests left open by a previous process');
    expect(rows.get('api_keys')).toBe(5);
    expect(rows.get('record_rows')).toBe(2_105);
    const [source, engine] = [useSqlite(file), usePostgres(target.url)];
    const store = storeOver(engine);
    const said = await describeStore(store);
    expect(said).toEqual(await describeStore(storeOver(source)));
    expect(said.bySecret.map((key) => key?.id ?? null)).toEqual([
      'key_a',
      'key_a',
      'key_free',
      'key_poor',
      'key_gone',
      'key_declared',
    ]);
    expect(said.accounts.get('key_poor')).toEqual({ balanceNanos: -40, heldNanos: 0, spentNanos: 50 });
    expect(said.keys.find(({ id }) => id === 'key_free')?.name).toBe(oddName);
    expect(said.records[0]?.length).toBe(2_105);
    expect(await store.findRecord(leftOpen.spooled, null)).toMatchObject({
      outcome: 'completed',
      chargeNanos: 600,
    });
    expect(await store.findRecord(leftOpen.lost, null)).toMatchObject({ outcome: 'lost', chargeNanos: 0 });
    expect(await verifyLedger(createLedgerAudit(engine))).toMatchObject({ records: 2_105, faults: [] });
    const linesOf = async (moved: Engine) => (await createAuditTrail(moved, () => 0).list({}, 9, null)).lines;
    const [line, ...before] = await linesOf(engine);
    expect(before).toEqual(await linesOf(source));
    expect(before.map(({ action }) => action)).toEqual(['key.revoke', 'key.create']);
    expect(line).toMatchObject({ number: 3, action: 'database.move', actor: { way: 'cli', name: 'ada' } });
  });

  test('gives a database in which requests, payments and retries go on behind the copied rows', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    await move(file, target.url);
    const engine = usePostgres(target.url);
    const store = storeOver(engine);
    const before = (await store.accounts(['key_a'])).get('key_a');
    expect((await store.credit({ keyId: 'key_a', nanos: 77, reference: oddName })).result).toBe(
      'booked before',
    );
    expect((await store.credit({ keyId: 'key_a', nanos: 5, reference: 'new' })).result).toBe('booked');
    await store.open(opened(requestIdFor('new'), 'key_a', 100));
    await store.settle(ended(requestIdFor('new'), 'key_a', 9));
    // Closed as lost in the file, and settled late here.
    await store.settle(ended(requestIdFor('closed'), 'key_a', 3));
    await expect(store.settle(ended(requestIdFor('late'), 'key_a', 5))).rejects.toThrow('no open record');
    // The number of a new account is behind those of the file.
    await store.createKey({ ...payingKey, id: 'key_new', name: 'new' }, 'hash_new', 100);
    const begun = { ...opened(requestIdFor('other'), 'key_new', 10), model: 'another model' };
    await store.open(begun);
    await store.settle({ ...ended(begun.requestId, 'key_new', 4), begun: beginningOf(begun) });
    expect(await store.findRecord(begun.requestId, 'key_new')).toMatchObject({
      model: 'another model',
      chargeNanos: 4,
    });
    const after = (await store.accounts(['key_a'])).get('key_a');
    expect(after?.balanceNanos).toBe((before?.balanceNanos ?? 0) + 5 - 9 - 3);
    expect((await verifyLedger(createLedgerAudit(engine))).faults).toEqual([]);
  });

  test('keeps the chains, roots and keys of statements: a statement from before and one from after tell one story', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    const source = openTestEngine(file);
    const before = statementsOver(source, () => startedMs);
    await before.makeRoot();
    const old = await before.state('key_a');
    const { current } = await before.statements.keys();
    await source.close();
    await move(file, target.url);
    const engine = usePostgres(target.url);
    await storeOver(engine).credit({ keyId: 'key_a', nanos: 5, reference: 'after the move' });
    const after = statementsOver(engine, () => startedMs + 1);
    expect(await after.makeRoot()).toMatchObject({ number: 2 });
    const text = await after.state('key_a');
    expect(await after.faultsOf(text)).toEqual([]);
    expect(await after.faultsOf(old)).toEqual([]);
    const both = [old, text].map((each, at) => ({ name: `${at}`, statement: readStatement(each) }));
    expect(compareStatements(both)).toEqual([]);
    expect(both[1]?.statement.rows.slice(0, both[0]?.statement.rows.length)).toEqual(both[0]?.statement.rows);
    expect(both[1]?.statement.signedBy).toBe(current);
    expect((await verifyLedger(createLedgerAudit(engine))).faults).toEqual([]);
  });

  test('changes nothing in a file of which a start of the gateway would change nothing', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    await move(file, target.url);
    const moved = dump(file);
    await move(file, (await emptyDatabase()).url);
    expect(dump(file)).toEqual(moved);
  });

  test('copies integers beyond 2^53 exactly', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    change(file, "UPDATE api_keys SET expires_at = 9007199254740993 WHERE id = 'key_a'");
    await move(file, target.url);
    expect(
      await onServer("SELECT expires_at::text AS at FROM api_keys WHERE id = 'key_a'", target.url),
    ).toEqual([{ at: '9007199254740993' }]);
  });

  test.each([
    [
      'a text with U+0000',
      "UPDATE api_keys SET name = 'a' || char(0) || 'b' WHERE id = 'key_poor'",
      `api_keys.name has the character U+0000, which PostgreSQL can't store, in the row with id "key_poor"`,
    ],
    [
      'a number that is no integer',
      `DROP TRIGGER charge_is_never_changed; UPDATE record_rows SET queued_ms = 1.5 WHERE tail = x'${tailOf('2000')}'`,
      "record_rows.queued_ms is no whole number, in the row with created_at 501, tail x'32303030000000000000'",
    ],
    [
      'a null where there is none',
      `DROP TABLE refusals; CREATE TABLE refusals (day, key_id, limit_name, requests, PRIMARY KEY (day, key_id, limit_name));
       INSERT INTO refusals VALUES (0, 'key_a', 'budget', NULL)`,
      'refusals.requests is null, and needs a value, in the row with day 0, key_id "key_a", limit_name "budget"',
    ],
    [
      'a column of another version',
      'ALTER TABLE record_rows ADD COLUMN colour TEXT',
      'record_rows.colour has no counterpart in PostgreSQL',
    ],
    [
      'a table of another version',
      'CREATE TABLE notes (a TEXT)',
      "tables that this version can't move: notes",
    ],
    [
      'a newer schema',
      "INSERT INTO migrations VALUES (999, 'later', 'x')",
      'was made by a newer version of textgate',
    ],
    [
      'a balance that its ledger does not explain',
      "UPDATE accounts SET balance = balance + 1 WHERE key_id = 'key_poor'",
      'does not balance, so nothing was copied:\nkey_poor: balance and holds are -39, but its ledger says -40',
    ],
  ])('of a file with %s is refused, and leaves nothing', async (_, sql, problem) => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    change(file, sql);
    await expect(move(file, target.url)).rejects.toThrow(problem);
    expect(await tablesOf(target)).toEqual([]);
  });

  test('is refused where a key, a record or a running request is in the target', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    const engine = usePostgres(target.url);
    await storeOver(engine).open(opened(requestIdFor('1'), 'key_1', 0));
    await engine.run([{ sql: "INSERT INTO accounts (key_id) VALUES ('key_1')", values: [] }]);
    await expect(move(file, target.url)).rejects.toThrow('is not empty: it has rows in accounts');
    expect(await storeOver(engine).countKeys()).toBe(0);
  });

  test('fills a database on which a gateway was started, and which is still empty', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    const engine = usePostgres(target.url);
    await engine.ready;
    await move(file, target.url);
    expect(await storeOver(engine).countKeys()).toBe(5);
  });

  test('leaves no record of this month in the default partition, which would keep the month from having its own', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    const source = openTestEngine(file);
    const written = storeOver(source);
    // More than the creation of a partition moves.
    const ids = Array.from({ length: 1_001 }, () => `req_${nextId()}`);
    await Promise.all(ids.map((id) => written.open(opened(id, 'key_a', 0))));
    await Promise.all(ids.map((id) => written.settle(ended(id, 'key_a', 0))));
    await source.close();
    await move(file, target.url);
    await usePostgres(target.url).ready;
    const [elsewhere] = await onServer(
      `SELECT count(*)::int AS count FROM record_rows
       WHERE tableoid <> 'records_default'::regclass AND 'req_' || lpad(to_hex(created_at), 12, '0') || encode(tail, 'hex')
         = ANY('{${ids.join()}}')`,
      target.url,
    );
    expect(elsewhere).toEqual({ count: ids.length });
  });

  test('is undone when the target does not have what was copied', async () => {
    const [file, target] = [usedFile(), await emptyDatabase()];
    const engine = createPostgresEngine({ url: target.url, clock: systemClock });
    await engine.ready;
    await engine.close();
    await onServer(
      `CREATE FUNCTION shorten() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.tail := substr(NEW.tail, 1, 9); RETURN NEW; END $$;
       CREATE TRIGGER shorten BEFORE INSERT ON record_rows FOR EACH ROW
         WHEN (NEW.tail = unhex('${tailOf('7')}')) EXECUTE FUNCTION shorten()`,
      target.url,
    );
    await expect(move(file, target.url)).rejects.toThrow(
      'record_rows.tail differs: 2105 values with the sum 21050 in SQLite, but 2105 values with the sum 21049 in PostgreSQL',
    );
    expect(await onServer('SELECT count(*) AS count FROM api_keys', target.url)).toEqual([{ count: '0' }]);
  });
});
