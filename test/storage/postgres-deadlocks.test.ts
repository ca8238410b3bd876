import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { joinStore, key, opened, settled } from '../conformance/store.ts';
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
});
