import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { retrySettlements } from '../../src/background/retry-settlements.ts';
import { KeyLockedError } from '../../src/domain/storage-refusal.ts';
import { functionOf } from '../../src/storage/postgres/database-function.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createKindNumbers } from '../../src/storage/records/kind-numbers.ts';
import { openingOf, openRecord } from '../../src/storage/records/open-record.ts';
import { openKind } from '../../src/storage/records/record-kinds.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { rejection, usePostgresBench } from '../support/postgres-bench.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

/** PostgreSQL's code of a call that was undone for a deadlock. */
const deadlockDetected = '40P01';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const bench = usePostgresBench();
let last = 0;

/** An engine whose units may wait for locks for a minute: what ends such a wait sooner is the limit of fixed units. */
async function open() {
  const clock = createFakeClock();
  const engine = createPostgresEngine({
    url: bench.url,
    clock,
    unitLimits: { statementMs: 60_000, lockMs: 60_000 },
  });
  onTestFinished(() => engine.close());
  await engine.ready;
  const store = createStore(engine, { nextId: () => `id_${++last}`, now: () => 7, report: () => {} });
  return { clock, engine, store };
}

/** A request of a new key with a balance of 1,000 nano-USD, whose record may be begun. */
async function requestOf(store: ReturnType<typeof createStore>) {
  const number = ++last;
  const key = { ...payingKey, id: `key_${number}`, name: `${number}` };
  await store.createKey(key, `hash ${number}`, 1_000);
  const opened = { ...openedRecord, keyId: key.id, requestId: requestIdFor(`${number}`) };
  const settled = { ...settledRecord, requestId: opened.requestId, begun: beginningOf(opened) };
  return {
    keyId: key.id,
    opened,
    settled,
    another: (name: number | string) => ({ ...opened, requestId: requestIdFor(`${number} ${name}`) }),
  };
}

/** Records whose settlements are kept. */
async function keep(store: ReturnType<typeof createStore>, clock: Clock) {
  const kept = retrySettlements(store, {
    clock,
    onFault: () => {},
    spool: null,
    ready: Promise.resolve(),
    isBroken: () => false,
    isLost: () => false,
  });
  await kept.recover();
  return kept;
}

/** Another session, such as an operator's, in a transaction. */
async function beginElsewhere(...statements: readonly string[]): Promise<Client> {
  const client = new Client({ connectionString: bench.url });
  await client.connect();
  onTestFinished(() => client.end());
  for (const statement of ['BEGIN', ...statements]) await client.query(statement);
  return client;
}

const lockAccount = (keyId: string) => `SELECT 1 FROM accounts WHERE key_id = '${keyId}' FOR UPDATE`;

const waiting = async (): Promise<number> => {
  const rows = await bench.sql(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows.length;
};

test.skipIf(postgresAbsence !== null)(
  'calls of one account on PostgreSQL that are handed in before the close are made, however many they are',
  async () => {
    const { engine, store } = await open();
    const { opened, another } = await requestOf(store);
    // What the first request of a kind asks the database before, none of the others has to ask.
    await store.open(opened);
    const made = Array.from({ length: 40 }, (_, number) => store.open(another(number)));
    await engine.close();
    for (const { granted } of await Promise.all(made)) expect(granted).toBe(true);
  },
);

describe.skipIf(postgresAbsence !== null)(
  `rows that another session has locked on PostgreSQL${absent}`,
  () => {
    test('fail the calls that need them long before the limit of other units, and those of other keys are made', async () => {
      const { store } = await open();
      const { keyId, opened } = await requestOf(store);
      // With so many some have the connection of the locked one.
      const others = await Promise.all(Array.from({ length: 32 }, () => requestOf(store)));
      const other = await beginElsewhere(lockAccount(keyId));
      const failed = rejection(store.open(opened));
      await eventually('it waits', async () => (await waiting()) === 1);
      const made = others.map((each) => store.open(each.opened));
      expect(await failed).toBeInstanceOf(KeyLockedError);
      for (const each of await Promise.all(made)) expect(each.granted).toBe(true);
      await other.query('COMMIT');
    });

    test('are not waited for again for 3 seconds, and the account works with the first call after that', async () => {
      const { clock, store } = await open();
      const [{ keyId, opened }, free] = [await requestOf(store), await requestOf(store)];
      const other = await beginElsewhere(lockAccount(keyId));
      await rejection(store.open(opened));
      await other.query('COMMIT');
      // The lock is gone, which is only looked at after the time.
      clock.advance(2_999);
      expect(await rejection(store.open(opened))).toMatchObject({ reason: 'locked', isPermanent: false });
      expect(await store.open(free.opened)).toMatchObject({ granted: true });
      clock.advance(1);
      expect(await store.open(opened)).toMatchObject({ granted: true });
    });

    test('keep no settlement from being made once, soon after they are free, nor those of other accounts meanwhile', async () => {
      const { clock, store } = await open();
      const kept = await keep(store, clock);
      const [held, free] = [await requestOf(store), await requestOf(store)];
      const second = held.another('again');
      for (const record of [held.opened, second, free.opened]) await kept.open(record);
      const other = await beginElsewhere(lockAccount(held.keyId));
      await kept.settle(held.settled);
      await kept.settle({ ...held.settled, requestId: second.requestId });
      await kept.settle(free.settled);
      expect(kept.waiting).toBe(2);
      // The node can take all other requests.
      await kept.checkWrites();
      expect([kept.writeFault, kept.takesWrites]).toEqual([null, true]);
      await other.query('COMMIT');
      const freeMs = clock.monotonicMs();
      await eventually('both are made', () => {
        clock.advance(20);
        return kept.waiting === 0;
      });
      expect(clock.monotonicMs() - freeMs).toBeGreaterThanOrEqual(3_000);
      const accounts = await store.accounts([held.keyId, free.keyId]);
      expect(accounts.get(held.keyId)).toMatchObject({ balanceNanos: 998, heldNanos: 0, spentNanos: 2 });
      expect(accounts.get(free.keyId)).toMatchObject({ balanceNanos: 999, heldNanos: 0, spentNanos: 1 });
      await kept.close();
    });

    test('stop no record of another key, however many wait for them and however quiet the node is', async () => {
      const { clock, store } = await open();
      const kept = await keep(store, clock);
      const [held, free] = [await requestOf(store), await requestOf(store)];
      const other = await beginElsewhere(lockAccount(held.keyId));
      const failed = Array.from({ length: 8 }, (_, number) => rejection(kept.open(held.another(number))));
      await failed[0];
      // The second one that was sent still waits for the lock.
      clock.advance(4_000);
      expect(await kept.open(free.opened)).toMatchObject({ granted: true });
      for (const error of await Promise.all(failed)) expect(error).toBeInstanceOf(KeyLockedError);
      await other.query('COMMIT');
    });

    test('are waited for by two calls at the first time: other keys of their connection wait no longer than for these', async () => {
      const { store } = await open();
      const { keyId, another } = await requestOf(store);
      const others = await Promise.all(Array.from({ length: 32 }, () => requestOf(store)));
      const other = await beginElsewhere(lockAccount(keyId));
      let asked = 0;
      const failed = Array.from({ length: 20 }, async (_, number) => {
        const error = await rejection(store.open(another(number)));
        if (error instanceof KeyLockedError && error.isAnswer) asked++;
      });
      const made = others.map((each) => store.open(each.opened));
      for (const each of await Promise.all(made)) expect(each.granted).toBe(true);
      await Promise.all(failed);
      expect(asked).toBe(2);
      await other.query('COMMIT');
    });

    test('have no call that names no rows refuse another one, of theirs or of others', async () => {
      const { engine, store } = await open();
      const [held, free] = [await requestOf(store), await requestOf(store)];
      const kind = await createKindNumbers(engine).ask(openKind(held.opened));
      const begin = ({ opened }: typeof held) =>
        engine.callFunction(functionOf(openRecord), opened.keyId, openingOf(opened, kind, 'owner').values);
      const other = await beginElsewhere(lockAccount(held.keyId));
      expect(await rejection(begin(held))).toBeInstanceOf(KeyLockedError);
      await begin(free);
      await other.query('COMMIT');
      await begin(held);
      const accounts = await store.accounts([held.keyId, free.keyId]);
      expect([...accounts.values()].map(({ heldNanos }) => heldNanos)).toEqual([5, 5]);
    });

    test('have no settlement refuse that of another key, nor say anything of the database', async () => {
      const { clock, store } = await open();
      const kept = await keep(store, clock);
      const [held, free] = [await requestOf(store), await requestOf(store)];
      for (const { opened } of [held, free]) await kept.open(opened);
      const other = await beginElsewhere(lockAccount(held.keyId));
      await kept.settle(held.settled);
      expect([kept.waiting, kept.writeFault]).toEqual([1, null]);
      await kept.settle(free.settled);
      expect(kept.waiting).toBe(1);
      expect((await store.accounts([free.keyId])).get(free.keyId)).toMatchObject({ spentNanos: 1 });
      await other.query('COMMIT');
      await eventually('it is made', () => {
        clock.advance(20);
        return kept.waiting === 0;
      });
      expect((await store.accounts([held.keyId])).get(held.keyId)).toMatchObject({ spentNanos: 1 });
      await kept.close();
    });

    test('have a deadlock found by PostgreSQL first: the call is repeated, and made', async () => {
      const { store } = await open();
      /** Whether there was a deadlock before PostgreSQL looked for one: that is a second after the call began to wait. */
      const isInTime = async (): Promise<boolean> => {
        const { keyId, opened, settled } = await requestOf(store);
        await store.open(opened);
        // The one that looks for deadlocks first is undone.
        const other = await beginElsewhere(
          `SET deadlock_timeout = '20s'`,
          `SELECT 1 FROM open_rows WHERE tail = unhex('${opened.requestId.slice(-20)}') FOR UPDATE`,
        );
        let isLate = false;
        const settling = store.settle(settled).catch((error: unknown) => {
          // On a busy machine, the repeated call may have the account before the other session, and meet a second deadlock.
          isLate =
            error instanceof KeyLockedError ||
            (error as { readonly code?: unknown }).code === deadlockDetected;
          if (!isLate) throw error;
        });
        await eventually('it has the account, and waits', async () => isLate || (await waiting()) === 1);
        await other.query(`UPDATE accounts SET spent = spent WHERE key_id = '${keyId}'`);
        await other.query('COMMIT');
        await settling;
        if (isLate) return false;
        const [account] = (await store.accounts([keyId])).values();
        expect(account).toMatchObject({ balanceNanos: 999, heldNanos: 0, spentNanos: 1 });
        return true;
      };
      await eventually('there was a deadlock in time', isInTime);
    });
  },
);
