import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { nextId } from '../../src/composition/next-id.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { unitFunctions } from '../../src/storage/postgres/unit-functions.ts';
import { createKindNumbers } from '../../src/storage/records/kind-numbers.ts';
import { settledKind } from '../../src/storage/records/record-kinds.ts';
import { valuesToSettle } from '../../src/storage/records/settle-record.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { say } from '../conformance/engine.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** Accounts that are charged at once, and how often each of two nodes charges them. */
const accounts = 20;
const rounds = 60;

/** How many credits the first of them has had: more rows than an audit reads at once. */
const credits = 2_500;

const price = { ...free, request: 1 };

/** A request that costs 1 nano-USD: its beginning and its settlement. */
function requestOf(keyId: string) {
  const begun = {
    ...openedRecord,
    requestId: `req_${nextId()}`,
    keyId,
    price,
    protocol: 'passthrough' as const,
  };
  return {
    begun,
    settlement: { ...settledRecord, requestId: begun.requestId, begun: beginningOf(begun) },
  };
}

/** Two nodes on one database with accounts. */
async function openNodes() {
  const first = await openPostgres();
  onTestFinished(() => first.close());
  const { url } = first.database;
  const second = createPostgresEngine({ url, clock: systemClock });
  onTestFinished(() => second.close());
  await second.ready;
  const faults: string[] = [];
  const [one, other] = [first, second].map((engine) =>
    createStore(engine, { nextId, now: () => 7, report: (message) => void faults.push(message) }),
  ) as [Store, Store];
  const keyIds = Array.from({ length: accounts }, (_, number) => `key_${number}`);
  for (const id of keyIds) await one.createKey({ ...payingKey, id, name: id }, id, 1_000_000);
  await first.run([
    say(`INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, reference, posting)
         SELECT 'key_0', 1 + number, 7, 'credit', 1, 'credit ' || number, 'p' FROM generate_series(1, ${credits}) AS number`),
    say(
      `UPDATE accounts SET balance = balance + ${credits}, postings = postings + ${credits} WHERE key_id = 'key_0'`,
    ),
  ]);
  return {
    engine: first,
    audit: createLedgerAudit(first),
    nodes: [one, other],
    faults,
    keyIds,
    url,
  } as const;
}

describe.skipIf(postgresAbsence !== null)(`an audit on PostgreSQL${absent}`, () => {
  test('finds nothing wrong again and again while two nodes charge the same accounts in parallel', async () => {
    const { audit, nodes, faults, keyIds } = await openNodes();
    const charge = async (node: Store, keyId: string): Promise<void> => {
      const { begun, settlement } = requestOf(keyId);
      await node.open(begun);
      await node.settle(settlement);
    };
    const state = { isCharging: true };
    const charged = Promise.all(
      nodes.map(async (node) => {
        for (let round = 0; round < rounds; round++)
          await Promise.all(keyIds.map((keyId) => charge(node, keyId)));
      }),
    ).finally(() => (state.isCharging = false));
    let audits = 0;
    for (; state.isCharging; audits++) {
      const { imbalanceNanos, faults: found } = await verifyLedger(audit, setImmediate);
      faults.push(...found, ...(imbalanceNanos === 0 ? [] : [`imbalance ${imbalanceNanos}`]));
    }
    await charged;
    expect(faults).toEqual([]);
    expect(audits).toBeGreaterThan(3);
    const records = 2 * rounds * accounts;
    expect(await verifyLedger(audit)).toEqual({ accounts, records, imbalanceNanos: 0, faults: [] });
  }, 60_000);

  test('finds nothing wrong when a charge is committed after one that began later, at any point of the audit', async () => {
    const { engine, nodes, faults, url } = await openNodes();
    const [node] = nodes;
    const client = new Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    const settle = unitFunctions.get('settle_record');
    if (settle === undefined) throw new Error('there is such a unit');
    const kind = await createKindNumbers(engine).ask(settledKind(requestOf('key_1').settlement, ''));
    for (let commitAt = 0; commitAt < 6; commitAt++) {
      const [slow, quick] = [requestOf('key_1'), requestOf('key_2')];
      await node.open(slow.begun);
      await node.open(quick.begun);
      await client.query('BEGIN');
      await client.query(
        settle.call(
          valuesToSettle({ ...slow.settlement, kind, settledAtMs: 7, described: null, isUnwritten: false }),
        ),
      );
      await node.settle(quick.settlement);
      let reads = 0;
      const audit = createLedgerAudit({
        async read(statements) {
          if (reads++ === commitAt) await client.query('COMMIT');
          return engine.read(statements);
        },
      });
      const { imbalanceNanos, faults: found } = await verifyLedger(audit, setImmediate);
      expect(reads).toBeGreaterThan(2);
      if (reads <= commitAt) await client.query('COMMIT');
      expect([imbalanceNanos, found]).toEqual([0, []]);
    }
    expect(faults).toEqual([]);
  });
});
