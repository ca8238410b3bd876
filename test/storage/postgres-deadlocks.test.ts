import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { budgetIdOf, claimOf } from '../../src/domain/budgets/budget.ts';
import { groupIdOf } from '../../src/domain/groups.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { joinStore, key, opened, settled, startMs } from '../conformance/store.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** How many requests are settled while others close them, and how often. */
const requests = 60;
const rounds = 5;

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
        ...ids.slice(0, requests / 2).map((id) => own.settle(settled(id, 1))),
        other.closeLostRecords(),
        own.closeAsLost(ids.toReversed()),
        ...ids.slice(requests / 2).map((id) => own.settle(settled(id, 1))),
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

  test('meet in no deadlock either where the keys share the budget of a group', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const engines = ['first', 'second'].map(() =>
      createPostgresEngine({ url: database.url, clock: systemClock }),
    );
    await Promise.all(engines.map(({ ready }) => ready));
    const [own, other] = engines.map((engine) => joinStore(engine));
    if (own === undefined || other === undefined) throw new Error('there are two');
    const keys = ['key-0', 'key-1', 'key-2'];
    for (const id of keys) await own.createKey({ ...key, id, name: id }, `hash of ${id}`, 1_000_000);
    const budget = {
      amountNanos: 1_000_000,
      per: 'month',
      timeZone: 'UTC',
      warnAt: [],
      raise: null,
    } as const;
    for (let round = 0; round < rounds; round++) {
      const recordsOf = (name: string) =>
        Array.from({ length: requests }, (_, number) => {
          const keyId = `key-${number % keys.length}`;
          const budgets = [
            claimOf('key', keyId, budget, startMs),
            claimOf('group', groupIdOf(`g-${number % 2}`), budget, startMs),
          ];
          return { ...opened(`${name} ${round} ${number}`, 10), keyId, budgets };
        });
      const records = recordsOf('settled');
      await Promise.all(records.map((record) => own.open(record)));
      const settle = (record: (typeof records)[number]) =>
        own.settle({ ...settled(record.requestId, 1), begun: beginningOf(record) });
      const ids = records.map(({ requestId }) => requestId);
      const more = recordsOf('lost');
      await Promise.all([
        ...records.slice(0, requests / 2).map(settle),
        ...more.map((record) => other.open(record)),
        other.closeLostRecords(),
        own.closeAsLost(ids.toReversed()),
        ...records.slice(requests / 2).map(settle),
      ]);
      await other.closeAsLost(more.map(({ requestId }) => requestId));
    }
    const ids = [...keys, ...[0, 1].map((group) => groupIdOf(`g-${group}`))].map((id) =>
      budgetIdOf(id, budget),
    );
    const stored = await own.budgetPeriods(ids);
    const periods = ids.flatMap((id) => stored.get(id) ?? []);
    expect(periods.map(({ heldNanos }) => heldNanos)).toEqual([0, 0, 0, 0, 0]);
    expect(periods.map(({ spentNanos }) => spentNanos)).toEqual([100, 100, 100, 150, 150]);
    const faults = await Promise.all(
      engines.map(async (engine) => (await verifyLedger(createLedgerAudit(engine))).faults),
    );
    expect(faults.flat()).toEqual([]);
    await Promise.all(engines.map((each) => each.close()));
    const [counted] = await onServer(
      `SELECT deadlocks FROM pg_stat_database WHERE datname = '${database.name}'`,
    );
    expect(counted).toEqual({ deadlocks: '0' });
  });
});
