import { Client } from 'pg';
import type { QueryConfig } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nextId } from '../../src/composition/next-id.ts';
import { takeSlot } from '../../src/storage/postgres/slots/slot-functions.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { unitFunctions } from '../../src/storage/postgres/unit-functions.ts';
import { createKindNumbers } from '../../src/storage/records/kind-numbers.ts';
import { settledKind } from '../../src/storage/records/record-kinds.ts';
import { valuesToSettle } from '../../src/storage/records/settle-record.ts';
import { createStore } from '../../src/storage/store.ts';
import { say } from '../conformance/engine.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`a settlement on PostgreSQL${absent}`, () => {
  test('locks no partition but that of its record, also when it is the first of a connection', async () => {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    await engine.run(
      [0, 1, 2].map((first) =>
        say(`CREATE TABLE records_later_${first} PARTITION OF record_rows
             FOR VALUES FROM (${Date.UTC(2090, first)}) TO (${Date.UTC(2090, first + 1)})`),
      ),
    );
    const store = createStore(engine, { nextId, now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    const client = new Client({ connectionString: engine.database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const begun = { ...openedRecord, requestId: `req_${nextId()}` };
    const settlement = { ...settledRecord, requestId: begun.requestId, begun: beginningOf(begun) };
    await store.open(begun);
    const kind = await createKindNumbers(engine).ask(settledKind(settlement, ''));
    await client.query('BEGIN');
    const values = valuesToSettle({
      ...settlement,
      kind,
      settledAtMs: 7,
      described: null,
      isUnwritten: false,
    });
    await client.query(unitFunctions.get('settle_record')?.call(values) ?? '');
    const { rows: locked } = await client.query(
      `SELECT relation::regclass::text AS name FROM pg_locks JOIN pg_inherits ON inhrelid = relation
       WHERE pid = pg_backend_pid() AND inhparent = 'record_rows'::regclass`,
    );
    const { rows: kept } = await client.query('SELECT tableoid::regclass::text AS name FROM record_rows');
    await client.query('COMMIT');
    expect(kept).toHaveLength(1);
    expect(locked).toEqual(kept);
  });

  /** A key with a slot for each of some requests, whose records are open; `freed` has those whose settlements freed it. */
  async function openWithSlots(count: number) {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const freed: string[] = [];
    const store = createStore(engine, {
      nextId,
      now: () => 7,
      report: () => {},
      onSlotFreed: ({ requestId }) => void freed.push(requestId),
    });
    await store.renewLease();
    await store.createKey(payingKey, 'hash', 1_000);
    const slots = createSlotStore(engine, () => store.owner());
    const take = (requestId: string) =>
      slots.take({
        keyId: payingKey.id,
        requestId,
        limits: { concurrency: count, requestsPerMinute: 100, queueWaitMs: 60_000 },
        mayWait: true,
      });
    const settlements = Array.from({ length: count }, () => {
      const opened = { ...openedRecord, requestId: `req_${nextId()}` };
      return {
        opened,
        settled: { ...settledRecord, requestId: opened.requestId, begun: beginningOf(opened) },
      };
    });
    for (const { opened } of settlements) {
      await take(opened.requestId);
      await store.open(opened);
    }
    const client = new Client({ connectionString: engine.database.url });
    await client.connect();
    onTestFinished(() => client.end());
    return {
      engine,
      store,
      slots,
      settlements: settlements.map(({ settled }) => settled),
      take,
      freed,
      client,
    };
  }

  test('frees the slot of its request, unless others wait for one: its node serves them', async () => {
    const { store, slots, settlements, take, freed } = await openWithSlots(3);
    const [first, second, third] = settlements;
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('there are three');
    await store.settle(first);
    expect(freed).toEqual([first.requestId]);
    await expect(store.settle(first)).rejects.toThrow('no open record');
    expect(await take('next')).toMatchObject({ verdict: 'granted', inFlight: 3 });
    expect(await take('waiting')).toBe('waiting');
    await store.settle(second);
    expect(freed).toEqual([first.requestId]);
    expect(await slots.release(payingKey.id, second.requestId)).toMatchObject([
      { requestId: 'waiting', decision: { verdict: 'granted', inFlight: 3 } },
    ]);
    await slots.release(payingKey.id, third.requestId);
    await store.settle(third);
    expect(freed).toEqual([first.requestId]);
    expect(await take('last')).toMatchObject({ verdict: 'granted', inFlight: 3 });
  });

  test('does not wait for a lock on the slots of its key: the slot stays, and is given back by its node', async () => {
    const { store, slots, settlements, freed, client } = await openWithSlots(1);
    const [settled] = settlements;
    if (settled === undefined) throw new Error('there is one');
    await client.query('BEGIN; SELECT * FROM key_limits FOR UPDATE');
    await store.settle(settled);
    expect(freed).toEqual([]);
    await client.query('COMMIT');
    expect(await slots.held()).toHaveLength(1);
    await slots.release(payingKey.id, settled.requestId);
    expect(await slots.held()).toEqual([]);
  });

  test('waits for the disk, although what frees a slot alone does not', async () => {
    const { engine, store, slots, settlements, client } = await openWithSlots(1);
    const [settled] = settlements;
    if (settled === undefined) throw new Error('there is one');
    const kind = await createKindNumbers(engine).ask(settledKind(settled, ''));
    const values = valuesToSettle({ ...settled, kind, settledAtMs: 7, described: null, isUnwritten: false });
    /** How a transaction commits that has made a call: what a function sets holds until then. */
    const commitOf = async (query: QueryConfig | undefined): Promise<unknown> => {
      await client.query('BEGIN');
      const { rows: result } = await client.query(query ?? '');
      const { rows } = await client.query('SHOW synchronous_commit');
      await client.query('COMMIT');
      return [result.length > 0, rows[0]?.synchronous_commit];
    };
    expect(await commitOf(unitFunctions.get('settle_record')?.call(values))).toEqual([true, 'on']);
    expect(await slots.held()).toEqual([]);
    expect(await commitOf(takeSlot.call([payingKey.id, 'next', store.owner(), 1, 100, 0]))).toEqual([
      true,
      'off',
    ]);
  });
});
