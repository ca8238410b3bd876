import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { budgetIdOf, termsOf } from '../../src/domain/budgets/budget.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import type { OpenedRecord, RecordBeginning } from '../../src/domain/money/consumption.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { say } from '../conformance/engine.ts';
import { joinStore, key, opened, settled, startMs } from '../conformance/store.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** How many requests are settled while others close them, and how often. */
const requests = 60;
const rounds = 5;

const dayMs = 86_400_000;

/** Keys of two groups; every second one has a budget of its own, too. */
const groupKeys = ['key-0', 'key-1', 'key-2', 'key-3', 'key-4'];
const shared: Budget = { amountNanos: 1_000_000, per: 'month', timeZone: 'UTC', warnAt: [1], raise: null };

/** A request of one of those keys, whose group changes with the requests. */
function grouped(id: string, number: number): OpenedRecord {
  const keyId = groupKeys[number % groupKeys.length] ?? '';
  const wanted = [
    ...(number % 2 === 0 ? [termsOf('key', keyId, { ...shared, per: 'day' }, startMs)] : []),
    termsOf('group', groupIdOf(`g${(number >> 1) % 2}`), shared, startMs),
  ];
  return { ...opened(id, 10), keyId, budgets: wanted };
}

function settlementOf({ requestId, hold, budgets = [], ...begun }: OpenedRecord): ReturnType<typeof settled> {
  const holdNanos = begun.keyId === 'key-0' ? hold.nanos : 0;
  const counted = budgets.map((budget) => ({ ...budget, holdNanos: hold.nanos }));
  const beginning: RecordBeginning = { ...begun, holdNanos, budgets: counted };
  return { ...settled('', 1), requestId, begun: beginning };
}

describe.skipIf(postgresAbsence !== null)(`money units of two nodes${absent}`, () => {
  test('meet in no deadlock: a request is settled while it is closed as lost', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const engines = ['first', 'second'].map(() =>
      createPostgresEngine({ url: database.url, clock: systemClock }),
    );
    await Promise.all(engines.map(({ ready }) => ready));
    const [own, other] = engines.map((engine) => joinStore(engine));
    if (own === undefined || other === undefined) throw new Error('there are two');
    const keys = ['key-0', 'key-1', 'key-2'];
    const end = (record: OpenedRecord) => ({
      ...settled('', 1),
      requestId: record.requestId,
      begun: beginningOf(record),
    });
    for (const id of keys) await own.createKey({ ...key, id, name: id }, `hash of ${id}`, 1_000_000);
    for (let round = 0; round < rounds; round++) {
      const records = Array.from({ length: requests }, (_, number) => {
        const keyId = `key-${number % keys.length}`;
        return { ...opened(`${round} ${number}`, 10), keyId };
      });
      // Their owner has no lease.
      await Promise.all(records.map((record) => own.open(record)));
      const ids = records.map(({ requestId }) => requestId);
      await Promise.all([
        ...records.slice(0, requests / 2).map((record) => own.settle(end(record))),
        other.closeLostRecords(),
        own.closeAsLost(ids.toReversed()),
        ...records.slice(requests / 2).map((record) => own.settle(end(record))),
      ]);
    }
    const accounts = await own.accounts(keys);
    const perKey = (requests * rounds) / keys.length;
    for (const account of accounts.values())
      expect(account).toMatchObject({ balanceNanos: 1_000_000 - perKey, heldNanos: 0, spentNanos: perKey });
    const faults = await Promise.all(
      engines.map(async (engine) => (await verifyLedger(createLedgerAudit(engine))).faults),
    );
    expect(faults.flat()).toEqual([]);
    // A connection reports what it counted when it ends.
    await Promise.all(engines.map((each) => each.close()));
    const [counted] = await onServer(
      `SELECT deadlocks FROM pg_stat_database WHERE datname = '${database.name}'`,
    );
    expect(counted).toEqual({ deadlocks: '0' });
  });

  test('meet in none where keys have common budgets, while their rolled day is marked and lost requests are closed', async () => {
    const database = await createDatabase();
    const engines = ['first', 'second'].map(() =>
      createPostgresEngine({ url: database.url, clock: systemClock }),
    );
    onTestFinished(() => database.drop());
    await Promise.all(engines.map(({ ready }) => ready));
    const [engine] = engines;
    const [own, other] = engines.map((each) => joinStore(each));
    if (engine === undefined || own === undefined || other === undefined) throw new Error('there are two');
    for (const id of groupKeys)
      await own.createKey({ ...key, id, name: id }, `hash of ${id}`, id === 'key-0' ? 1_000_000 : null);
    // A process without a lease, whose requests any sweep may close before they are settled.
    const lost = joinStore(engine);
    const rollups = createUsageRollups(engine);
    const ids: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const records = Array.from({ length: requests }, (_, number) => grouped(`${round} ${number}`, number));
      ids.push(...records.map(({ requestId }) => requestId));
      // A request of the same day comes later in each round, when that is rolled up.
      await Promise.all([own.renewLease(), other.renewLease()]);
      const [first, ...others] = records;
      if (first === undefined) throw new Error('there is one');
      await own.open(first);
      await own.settle(settlementOf(first));
      await rollups.rollUp(startMs + 3 * dayMs, async () => {});
      const late = others.slice(0, requests / 2);
      await Promise.all(late.map((record) => lost.open(record)));
      await Promise.all([
        ...others.slice(requests / 2).map(async (record, number) => {
          const store = number % 2 === 0 ? own : other;
          await store.open(record);
          await store.settle(settlementOf(record));
        }),
        ...late.map((record, number) => (number % 2 === 0 ? other : own).settle(settlementOf(record))),
        other.closeLostRecords(),
        own.closeAsLost(late.map(({ requestId }) => requestId).toReversed()),
        other.closeLostRecords(),
        rollups.rollUp(startMs + 3 * dayMs, async () => {}),
      ]);
    }
    const [charged = []] = await engine.read([
      say('SELECT count(*) AS count, sum(charge) AS sum FROM records'),
    ]);
    expect(charged).toEqual([{ count: ids.length, sum: ids.length }]);
    const groupIds = [0, 1].map((number) => budgetIdOf(groupIdOf(`g${number}`), shared));
    const periods = await own.budgetPeriods(groupIds);
    const [spent, held] = (['spentNanos', 'heldNanos'] as const).map((of) =>
      [...periods.values()].reduce((sum, period) => sum + period[of], 0),
    );
    expect([spent, held]).toEqual([ids.length, 0]);
    expect(await verifyLedger(createLedgerAudit(engine))).toMatchObject({ faults: [], imbalanceNanos: 0 });
    const [states = []] = await engine.read([say('SELECT DISTINCT state FROM usage_periods')]);
    expect(states.length).toBeGreaterThan(0);
    await Promise.all(engines.map((each) => each.close()));
    const [counted] = await onServer(
      `SELECT deadlocks FROM pg_stat_database WHERE datname = '${database.name}'`,
    );
    expect(counted).toEqual({ deadlocks: '0' });
  });
});
