import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type { DeclaredKey } from '../../src/domain/keys/declared-key.ts';
import type { OpenedRecord, RecordFilter, SettledRecord } from '../../src/domain/money/consumption.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { createStatements } from '../../src/operations/statements.ts';
import { makeRoot } from '../../src/operations/make-root.ts';
import { startOfChain } from '../../src/domain/statements/chain.ts';
import { createLedgerChain } from '../../src/storage/ledger/ledger-chain.ts';
import { createLedgerRoots } from '../../src/storage/ledger/ledger-roots.ts';
import { createSigningKeys } from '../../src/storage/ledger/signing-keys.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createAuditTrail } from '../../src/storage/audit/audit-lines.ts';
import { createAuditChain } from '../../src/storage/audit/audit-chain.ts';
import type { Engine, Statement } from '../../src/storage/engine.ts';
import { foldLedger, selectPostings, createRetention } from '../../src/storage/retention.ts';
import { createDeliveries } from '../../src/storage/outbox/deliveries.ts';
import { createOutbox, createUpstreamOutages } from '../../src/storage/outbox/outbox.ts';
import { endOverLeases } from '../../src/storage/leases.ts';
import { usageDimensions, usagePeriods } from '../../src/domain/ports/usage.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { createTokenUse } from '../../src/storage/token-use.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { statementsOf } from '../support/fixed-units.ts';
import { openTestEngine } from '../support/test-engine.ts';
import {
  beginningOf,
  budgetTerms,
  budgetedRecord,
  groupedRecord,
  openedRecord,
  payingKey,
  twiceBudgetedRecord,
} from '../support/stored-rows.ts';
import { requestIdFor } from '../support/request-ids.ts';

/** Whole readings that are meant: of tables with a row per key or process, of the open requests, the clock, and values. */
const meantScans = new Set([
  'SCAN open',
  'SCAN open_rows',
  'SCAN closed',
  'SCAN accounts',
  'SCAN budgets',
  'SCAN owners',
  // What many records have in common.
  'SCAN record_kinds',
  'SCAN outages',
  'SCAN clock',
  'SCAN CONSTANT ROW',
  'SCAN 2 CONSTANT ROWS',
  // Rows of an account with numbers in a range, of both parts of its ledger, which are found by their indexes.
  'SCAN ledger',
  // The next records, among which those of a model are looked for: some thousand.
  'SCAN passed',
  'SCAN last',
  'SCAN json_each VIRTUAL TABLE INDEX 1:',
  'SCAN wanted',
  // What a page of usage is added up from: a few thousand rows, found by an index.
  'SCAN parts',
  'SCAN search',
  'SCAN statement_keys',
  'SCAN api_keys USING COVERING INDEX sqlite_autoindex_api_keys_2',
  'SCAN api_keys USING INDEX api_keys_declared',
]);

/** What waits for webhooks, once an hour: the index has no delivery that has ended. */
const waitingScan = 'SCAN webhook_deliveries USING INDEX webhook_deliveries_oldest';

/** The rows of a page come in the index's order, and no more of them are read than the page has. */
const pageScans = new Set([
  'SCAN record',
  'SCAN record_rows',
  'SCAN record_rows USING INDEX records_by_failure',
  'SCAN api_keys USING INDEX api_keys_by_creation',
  'SCAN webhook_deliveries USING INDEX sqlite_autoindex_webhook_deliveries_1',
  'SCAN webhook_deliveries USING INDEX webhook_deliveries_oldest',
]);

/** Searches that find one row of a growing table, or none, or as many as the numbers in a range that an audit or a fold chose. */
const findsFew =
  /PRIMARY KEY \(created_at=\? AND tail=\?\)|records_by_charge \(account=\? AND charge_number(=\?|>\? AND charge_number<\?)\)|ledger_by_reference \(key_id=\? AND reference=\?\)|ledger_rows USING PRIMARY KEY \(key_id=\? AND (number=\?|(number>\? AND )?number<\?)\)/;

/** How an INSERT of accounts asks whether records refer to their new numbers already: there are none. */
const findsNone = /^SEARCH record_rows USING (COVERING )?INDEX records_by_key \(account=\?\)$/;

const key: ApiKey = { ...payingKey, id: 'key_new' };
const declared: DeclaredKey = {
  name: 'declared',
  hash: 'declared hash',
  limits: {},
  models: null,
  allowFrom: null,
  lowBalanceNanos: null,
  tags: [],
  expiresAt: null,
  budget: null,
  group: null,
  weight: 1,
  joinRetriesMs: null,
  compatibility: {},
};
const opened: OpenedRecord = { ...openedRecord, requestId: requestIdFor('new'), keyId: key.id };
/** One for each set of budgets that a request may count in. */
const budgeted: readonly OpenedRecord[] = [budgetedRecord, groupedRecord, twiceBudgetedRecord].map((record) =>
  Object.assign({}, record, { keyId: key.id }),
);
const settled: SettledRecord = {
  requestId: opened.requestId,
  begun: beginningOf(opened),
  outcome: 'completed',
  upstream: null,
  attempts: [],
  status: 200,
  usage: null,
  usageSource: 'none',
  price: free,
  chargeNanos: 3,
  firstTextMs: null,
  totalMs: 1,
};

const claim = { keyId: key.id, name: 'c1'.repeat(32), request: 'a5'.repeat(32) };

/** Every combination of filters, with and without a cursor. */
async function listAllWays(store: Store): Promise<void> {
  const [newest] = (await store.listRecords({}, 1, null))?.records ?? [];
  if (newest === undefined) throw new Error('the database is empty');
  const filters: readonly RecordFilter[] = [
    { keyId: newest.keyId },
    { model: newest.model },
    { from: newest.createdAtMs - 100 },
    { to: newest.createdAtMs + 100 },
  ];
  for (let set = 0; set < 1 << filters.length; set++) {
    const filter = Object.assign({}, ...filters.filter((_, bit) => set & (1 << bit))) as RecordFilter;
    for (const before of [null, newest.requestId]) await store.listRecords(filter, 2, before);
    if (filter.to !== undefined)
      await store.listRecords({ ...filter, to: newest.createdAtMs - 50 }, 2, newest.requestId);
    for (const before of [null, newest.requestId])
      for (const more of [{ cause: 'x' }, { upstream: newest.upstream, minDurationMs: 5, minChargeNanos: 5 }])
        await store.listRecords({ ...filter, ...more }, 2, before);
  }
}

/** Each of the store's methods, in a way that leads to all of its statements. */
const uses: { readonly [Name in keyof Store]: (store: Store) => Promise<unknown> } = {
  findClaim: (store) => store.findClaim(claim),
  beginClaim: (store) => store.beginClaim(claim, requestIdFor('claimed')),
  freeClaim: (store) => store.freeClaim(claim, requestIdFor('claimed')),
  removeClaims: (store) => store.removeClaims(1),
  openingOf: async (store) => store.openingOf({ ...openedRecord, keyId: key.id }),
  createKey: (store) => store.createKey(key, 'hash', 1_000),
  createFirstKey: (store) => store.createFirstKey({ ...key, id: 'key_first' }, 'hash of the first'),
  importKey: (store) => store.importKey({ ...key, id: 'key_imported' }, 'hash of the imported', 1_000),
  findHolder: (store) => store.findHolder('hash'),
  findKeyByHash: (store) => store.findKeyByHash('hash'),
  findKeyById: (store) => store.findKeyById(key.id),
  async listKeys(store) {
    for (const filter of [
      {},
      { search: 'a' },
      { state: 'active' },
      { state: 'expired' },
      { state: 'revoked' },
    ] as const)
      for (const before of [null, keyIdOf(3)]) await store.listKeys(filter, 2, before);
  },
  updateKey: (store) => store.updateKey(key.id, { name: 'y', compatibility: { sampling: 'strict' } }),
  rotateKey: (store) => store.rotateKey(key.id, 'other', 99),
  revokeKey: (store) => store.revokeKey(key.id, 1),
  countKeys: (store) => store.countKeys(),
  namesOf: (store) => store.namesOf([keyIdOf(1), keyIdOf(2)]),
  limitsOf: (store) => store.limitsOf([keyIdOf(1), keyIdOf(2)]),
  async credit(store) {
    await store.credit({ keyId: key.id, nanos: 5, reference: 'r' });
    await store.credit({ keyId: 'none', nanos: 5, reference: 'r' });
  },
  listDeclarations: (store) => store.listDeclarations([declared]),
  storeDeclarations: (store) =>
    store.storeDeclarations(
      { changed: [{ id: 'key_declared', spareId: 'key_spare', declared }], removed: ['gone'] },
      1,
    ),
  accounts: (store) => store.accounts([keyIdOf(1), keyIdOf(2)]),
  budgetPeriods: (store) => store.budgetPeriods([budgetTerms.id]),
  countWarnedBudgets: (store) => store.countWarnedBudgets(1),
  async open(store) {
    await store.open(opened);
    for (const record of budgeted) await store.open(record);
  },
  isKnownKind: async (store) => store.isKnownKind(opened),
  listClosable: (store) => store.listClosable(9_999_999_999_999, 9_999_999_999_999),
  closeAsLost: (store) => store.closeAsLost([opened.requestId, requestIdFor('none')]),
  renewLease: (store) => store.renewLease(),
  endOverLeases: (store) => store.endOverLeases(),
  endLease: (store) => store.endLease(),
  owner: async (store) => store.owner(),
  countOpen: (store) => store.countOpen(),
  async settle(store) {
    await store.settle(settled);
    for (const record of budgeted)
      await store.settle({ ...settled, requestId: record.requestId, begun: beginningOf(record) });
  },
  isSettled: (store) => store.isSettled(settled),
  listRecords: listAllWays,
  async countLatencies(store) {
    const [oldest] = (await store.listRecords({}, 1, null))?.records ?? [];
    const atMs = oldest?.createdAtMs ?? 0;
    for (const more of [{}, { upstream: 'u', model: 'small' }])
      await store.countLatencies({ fromMs: atMs - 1_000, toMs: atMs + 1, ...more }, 100);
  },
  async findRecord(store) {
    await store.findRecord(opened.requestId, key.id);
    await store.findRecord(opened.requestId, null);
  },
  countLowBalances: (store) => store.countLowBalances(5, 1),
  closeLostRecords: (store) => store.closeLostRecords(),
  checkWrites: (store) => store.checkWrites(),
};

/** Every statement of events and their deliveries. */
async function useOutbox(recording: Engine): Promise<void> {
  const outbox = createOutbox(recording, randomUUID);
  await outbox.storeSettings({ lowBalanceNanos: 5, budgetLevels: false });
  await outbox.listExpiring(0, 9, '1d');
  await outbox.add([{ name: 'an event', type: 'key.expiring', subject: 'key:x', data: {} }]);
  const deliveries = createDeliveries(recording);
  const webhooks = [{ name: 'ops', types: ['key.expiring'] as const }];
  await deliveries.route(webhooks);
  const [due] = await deliveries.listDue('ops', 1);
  if (due === undefined) throw new Error('nothing is due');
  await deliveries.retry(due, 'ops', 1, 'x');
  await deliveries.end(due, 'ops', 'dead', 'x');
  await deliveries.oldestAgeMs(['ops']);
  for (const filter of [
    {},
    { webhook: 'ops' },
    { state: 'dead' },
    { webhook: 'ops', state: 'dead' },
  ] as const)
    for (const before of [null, 9]) await deliveries.list(filter, 2, before);
  await deliveries.count(['ops']);
  await deliveries.resend(due.event.id, ['ops']);
  await deliveries.clean(webhooks, { givenUpMs: 1, keptMs: 1 });
  const outages = createUpstreamOutages(recording, () => 'owner', randomUUID);
  await outages.sawDown('big');
  await outages.list();
  await outages.sawUp('big');
  await outages.forget('big');
}

/** Usage of a few years around a time, rolled up and asked for in every way. */
async function useUsage(recording: Engine, atMs: number): Promise<void> {
  const rollups = createUsageRollups(recording);
  const dayMs = 86_400_000;
  const midnightMs = Math.floor(atMs / dayMs) * dayMs;
  const range = { fromMs: midnightMs - 366 * dayMs, toMs: midnightMs + 366 * dayMs, limit: 2, after: null };
  const ask = async (): Promise<void> => {
    for (const period of [null, ...usagePeriods])
      for (let set = 0; set < 1 << usageDimensions.length; set++)
        for (const where of [
          {},
          { keyId: keyIdOf(3) },
          { model: 'small' },
          { tag: null },
          { group: 'research' },
        ])
          await createUsage(recording).usage({
            ...range,
            by: [
              ...(period === null ? [] : [period]),
              ...usageDimensions.filter((_, bit) => set & (1 << bit)),
            ],
            where,
          });
  };
  await ask();
  expect(await rollups.rollUp(atMs + 80 * dayMs, async () => {})).toBeGreaterThan(60);
  await ask();
}

const asked = new Map<string, Statement>();
let folder: string;
let filled: DatabaseSync;
let engine: Engine;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'textgate-plans-'));
  const file = join(folder, 'textgate.db');
  engine = openTestEngine(file);
  await engine.ready;
  fillDatabase(file, { keys: 100, records: 2_000, models: ['small', 'large', 'huge'] });
  const note = (statements: readonly Statement[]): void =>
    statements.forEach((statement) => asked.set(statement.sql, statement));
  const recording: Engine = {
    ...engine,
    run: (unit) => (note(unit), engine.run(unit)),
    call: (unit, values) => (note(statementsOf(unit, values)), engine.call(unit, values)),
    read: (statements) => (note(statements), engine.read(statements)),
    lookUp: (statements) => (note(statements), engine.lookUp(statements)),
  };
  const store = createStore(recording, { nextId: () => 'posting', now: () => 7, report: () => {} });
  for (const use of Object.values(uses)) await use(store);
  // Asked only where a lease is over.
  note([endOverLeases('owner')]);
  await stateAll(recording);
  await verifyLedger(createLedgerAudit(recording));
  const tokenUse = createTokenUse(recording, (message) => expect.unreachable(message));
  await tokenUse.add(keyIdOf(1), 5);
  await tokenUse.used(keyIdOf(1));
  const retention = createRetention(recording);
  const [oldest] = await retention.listOldest(Number.MAX_SAFE_INTEGER, null, 1);
  if (oldest === undefined) throw new Error('the database is empty');
  const removed = [false, true].map((isLost) => ({ requestId: oldest.requestId, isLost }));
  await retention.removeRecords(removed, oldest.createdAtMs + 1);
  await retention.foldLedgers(async () => {});
  await retention.oldestRecord();
  await useUsage(recording, 1_700_000_000_000);
  await useOutbox(recording);
  note([selectPostings(keyIdOf(1), 0), ...foldLedger(keyIdOf(1), startOfChain(keyIdOf(1), 1))]);
  filled = new DatabaseSync(file);
});
afterAll(async () => {
  filled.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

/** Leads to the statements behind statements of accounts, and behind the audit of what was sealed. */
async function stateAll(recording: Engine): Promise<void> {
  const [chain, roots] = [createLedgerChain(recording), createLedgerRoots(recording)];
  const clock = { now: () => 7, monotonicMs: () => 7 };
  const pause = async (): Promise<void> => {};
  const audit = createAuditChain(recording, () => 7);
  await makeRoot({ chain, roots, audit, clock, pause, onFault: (fault) => expect(fault).toBeNull() });
  const statements = createStatements({
    chain,
    roots,
    keys: createSigningKeys(recording, clock.now),
    givenKey: () => null,
    clock,
  });
  await statements.make({ id: keyIdOf(1), name: 'x' }, { fromMs: 1, toMs: 9, after: null });
  await statements.keys();
  for await (const faults of createLedgerAudit(recording).sealFaults(pause, 10)) expect(faults).toEqual([]);
}

/** What SQLite does for a statement, line by line. */
function planOf(database: DatabaseSync, { sql, values }: Statement): readonly string[] {
  for (const name of ['now_ms', 'transaction_number', 'oldest_transaction']) database.function(name, () => 7);
  return database
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...values)
    .map(({ detail }) => String(detail));
}

/** The lines of a plan by which a statement would take longer with every request that was ever made. */
function slowSteps(database: DatabaseSync, statement: Statement): readonly string[] {
  const isPage =
    /ORDER BY .* LIMIT (\?|1 OFFSET \?)$|LIMIT 1 OFFSET \?\) AS last\s+JOIN records ON [^()]*$/s.test(
      statement.sql,
    );
  const insertsKeys = statement.sql.includes('INSERT INTO accounts');
  const isOfOpen = /FROM open_rows\s+WHERE owner/.test(statement.sql);
  const isOfLedger = /FROM ledger\s+WHERE key_id = \? AND number > \? AND number <= \?/.test(statement.sql);
  // Some hundred events at most.
  const isOfRouting = statement.sql.includes('INSERT INTO webhook_deliveries');
  const isUsage = /FROM usage_(hours|rollups)\b/.test(statement.sql);
  // Sums of some thousand records, which lie side by side.
  const isOfLatencies = statement.sql.startsWith('SELECT upstream, model, bound, ');
  const sorts = (step: string): boolean =>
    !isOfOpen && !isOfLedger && !isUsage && !isOfRouting && !isOfLatencies && step.includes('TEMP B-TREE');
  const isOfOrphans = statement.sql.includes('webhook NOT IN (SELECT name FROM wanted)');
  const scans = (step: string): boolean =>
    step.startsWith('SCAN') &&
    !isOfRouting &&
    !(isOfOrphans && step === waitingScan) &&
    !meantScans.has(step) &&
    !((isPage || isOfLatencies) && (pageScans.has(step) || step === 'SCAN counted'));
  const searchesMany = (step: string): boolean =>
    /^SEARCH (record|record_rows|ledger_rows)\b/.test(step) &&
    !isPage &&
    !isOfLatencies &&
    !findsFew.test(step) &&
    !(insertsKeys && findsNone.test(step));
  return planOf(database, statement).filter((step) => sorts(step) || scans(step) || searchesMany(step));
}

describe('the statements of the product, on a filled database without statistics', () => {
  test('are all recorded: every method of the store and of the ledger audit is used', () => {
    expect(asked.size).toBeGreaterThan(50);
    expect([...asked.keys()].filter((sql) => /FROM records.*LIMIT \?$/s.test(sql))).toHaveLength(18);
    expect(
      filled.prepare(`SELECT count(*) AS n FROM sqlite_schema WHERE name = 'sqlite_stat1'`).get(),
    ).toEqual({ n: 0 });
  });

  test('search the tokens of one key by its rows alone', () => {
    const ofTokens = [...asked.values()].filter(({ sql }) => /(FROM|INTO) token_use/.test(sql));
    expect(ofTokens).toHaveLength(5);
    for (const step of ofTokens.flatMap((statement) => planOf(filled, statement)))
      expect(step).toMatch(
        /^(COMPOUND QUERY|LEFT-MOST SUBQUERY|UNION ALL|SEARCH token_use USING PRIMARY KEY \(key_id=\? AND length_ms=\?)/,
      );
  });

  test.each(['budget', 'group_budget'])(
    'add up what the requests of a period were charged by the index of its column %s',
    (column) => {
      const sums = [...asked.values()].filter(({ sql }) =>
        sql.includes(`SELECT request_id, charge FROM records WHERE ${column} = ?`),
      );
      expect(sums).toHaveLength(1);
      const steps = sums.flatMap((statement) => planOf(filled, statement));
      expect(steps).toEqual([
        expect.stringMatching(
          new RegExp(`^SEARCH record USING INDEX records_by_${column} \\(${column}=\\? AND`),
        ),
        'SEARCH accounts USING INTEGER PRIMARY KEY (rowid=?)',
        'SEARCH record_kinds USING INTEGER PRIMARY KEY (rowid=?)',
      ]);
    },
  );

  test('add up what keys used over all time without the hours of other keys', async () => {
    const found: string[] = [];
    const recording: Engine = {
      ...engine,
      read: (statements) => {
        found.push(...statements.flatMap((statement) => planOf(filled, statement)));
        return engine.read(statements);
      },
    };
    await verifyLedger(createLedgerAudit(recording));
    const allTime = { fromMs: 0, toMs: Date.UTC(9999, 0), limit: 9, after: null };
    for (const by of [[], ['key'], ['model'], ['tag'], ['group']] as const)
      await createUsage(recording).usage({ ...allTime, by, where: { keyId: keyIdOf(3) } });
    const ofKeys = found.filter((step) => /^SEARCH usage_(hours|rollups)\b.*key_id/.test(step));
    expect(ofKeys.length).toBeGreaterThan(8);
    expect(found.filter((step) => /usage_(hours|rollups)\b.*hour>\? AND hour<\?/.test(step))).toEqual([]);
  });

  test('have no numbered placeholders', () => {
    expect([...asked.keys()].filter((sql) => /\?\d/.test(sql))).toEqual([]);
  });

  test('never read or sort all records or the whole ledger', () => {
    const slow = [...asked.values()]
      .map((statement) => [statement.sql, slowSteps(filled, statement)] as const)
      .filter(([, steps]) => steps.length > 0);
    expect(slow).toEqual([]);
  });

  test('do so neither in a restored backup', () => {
    const copy = join(folder, 'backup.db');
    filled.prepare('VACUUM INTO ?').run(copy);
    const restored = new DatabaseSync(copy);
    onTestFinished(() => restored.close());
    expect([...asked.values()].flatMap((statement) => slowSteps(restored, statement))).toEqual([]);
  });

  test('look for a model or a cause among the records of one key by its index, whatever the time and the cursor', () => {
    const pages = [...asked.values()].filter(({ sql }) =>
      /SELECT records\.\* FROM .* WHERE account = \(/.test(sql),
    );
    expect(pages.length).toBeGreaterThan(5);
    for (const page of pages) {
      const steps = planOf(filled, page).filter((step) => /^(SEARCH|SCAN) record(_rows)?\b/.test(step));
      expect(steps).toEqual([
        expect.stringMatching(/^SEARCH record_rows USING INDEX records_by_key \(account=\?/),
        'SEARCH record USING PRIMARY KEY (created_at=? AND tail=?)',
      ]);
    }
  });

  test('look for a cause among the failures alone, whatever the time and the cursor', () => {
    const pages = [...asked.values()].filter(({ sql }) =>
      /FROM record_rows WHERE \(failure IS NOT NULL/.test(sql),
    );
    expect(pages.length).toBeGreaterThan(5);
    for (const page of pages) {
      const first = planOf(filled, page).find((step) => /^(SEARCH|SCAN) record_rows\b/.test(step));
      expect(first).toMatch(/^(SEARCH|SCAN) record_rows USING (COVERING )?INDEX records_by_failure\b/);
    }
  });

  test.each([
    ['actor', 'audit_lines_by_actor (actor=? AND number<?)'],
    ['keyId', 'audit_lines_by_key (key_id=? AND number<?)'],
  ])(
    'find lines of the audit by their %s in the order of a page, whatever the time',
    async (field, index) => {
      const asks: Statement[] = [];
      const read: Engine['read'] = (statements) => (asks.push(...statements), engine.read(statements));
      await createAuditTrail({ ...engine, read }, () => 7).list(
        { [field]: 'x', fromMs: 1, search: 'y' },
        9,
        5,
      );
      expect(asks.flatMap((ask) => planOf(filled, ask))).toEqual([
        'SEARCH audit_lines USING INTEGER PRIMARY KEY (rowid=?)',
        expect.stringMatching(/^LIST SUBQUERY/),
        `SEARCH audit_lines USING INDEX ${index}`,
      ]);
    },
  );

  test.each([
    'SELECT sum(hold) FROM records WHERE outcome IS NULL GROUP BY key_id',
    'SELECT min(created_at), max(number) FROM ledger',
    'SELECT * FROM records ORDER BY total_ms LIMIT ?',
    "SELECT 1 FROM ledger_rows WHERE key_id = 'a' AND posting = 'b'",
  ])('are found slow where they are: %s', (sql) => {
    const values = sql.includes('?') ? [1] : [];
    expect(slowSteps(filled, { sql, values })).not.toEqual([]);
  });
});
