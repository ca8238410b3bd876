import { describe, expect, onTestFinished, test } from 'vitest';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import type { KeptConnection } from '../../src/storage/postgres/connection/connection.ts';
import { Lanes } from '../../src/storage/postgres/connection/connections.ts';
import { readTarget } from '../../src/storage/postgres/connection/connection-target.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { rejection, usePostgresBench } from '../support/postgres-bench.ts';
import { payingKey } from '../support/stored-rows.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** How long a look-up waits for its answer before its connection is given up, in milliseconds. */
const silenceMs = 5_000;

/**
 * Advances a clock by 10 ms at each call, and by no more than a second in all: enough for the pause before a connection is
 * opened, and too little for one to be given up because its server takes some real time.
 */
function limitedTime(clock: FakeClock): () => void {
  let passedMs = 0;
  return () => {
    if (passedMs >= 1_000) return;
    passedMs += 10;
    clock.advance(10);
  };
}

describe.skipIf(postgresAbsence !== null)(`look-ups on PostgreSQL${absent}`, () => {
  const bench = usePostgresBench();
  const open = async () => {
    const { proxy, url } = await bench.proxy();
    const clock = createFakeClock();
    const engine = createPostgresEngine({ url, clock });
    onTestFinished(() => {
      proxy.reset();
      return engine.close();
    });
    await engine.ready;
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    return { proxy, clock, engine, store };
  };

  test('find a key again 5 seconds after the network has forgotten all connections without a word', async () => {
    const { proxy, clock, store } = await open();
    await store.createKey(payingKey, 'hash', null);
    expect(await store.findKeyByHash('hash')).toMatchObject({ id: payingKey.id });
    clock.advance(60_000);
    proxy.forget();
    const lost = rejection(store.findKeyByHash('hash'));
    clock.advance(silenceMs);
    expect(await lost).toMatchObject({ reason: 'slow', isPermanent: false });
    // Of two connections only one was used: the other one is no trap for the next look-up.
    const passTime = limitedTime(clock);
    await eventually('a key is found', async () => {
      passTime();
      return (await store.findKeyByHash('hash').catch(() => null)) !== null;
    });
  });

  test('wait for no long reads, however many there are', async () => {
    const { engine } = await open();
    const holder = new Lanes(1, {
      target: readTarget(bench.url),
      limits: { statementMs: 60_000, lockMs: 0 },
      callsFunctions: true,
      clock: createFakeClock(),
    });
    onTestFinished(() => holder.close());
    await holder.opened;
    await holder.of('').send([{ text: 'SELECT pg_advisory_lock(1)' }]);
    const order: string[] = [];
    const wait = { sql: 'SELECT pg_advisory_xact_lock_shared(1)', values: [] };
    const long = Array.from({ length: 10 }, () => engine.read([wait]).then(() => order.push('long')));
    for (let number = 0; number < 5; number++) {
      const look = { sql: 'SELECT CAST(? AS BIGINT) AS number', values: [number] };
      expect(await engine.lookUp([look])).toEqual([[{ number }]]);
    }
    order.push('look-ups');
    await holder.of('').send([{ text: 'SELECT pg_advisory_unlock(1)' }]);
    await Promise.all(long);
    expect(order).toEqual(['look-ups', ...Array.from({ length: 10 }, () => 'long')]);
  });

  test('of which each takes the server two seconds are answered', async () => {
    const { engine } = await open();
    const look = { sql: 'SELECT 1 AS number FROM pg_sleep(2.1)', values: [] };
    expect(await engine.lookUp([look])).toEqual([[{ number: 1 }]]);
  });

  test('are ended by the server after 3 seconds', async () => {
    const { engine } = await open();
    const setting = (name: string) => ({ sql: `SELECT current_setting('${name}') AS value`, values: [] });
    const names = ['statement_timeout', 'lock_timeout', 'default_transaction_read_only'];
    const results = await engine.lookUp(names.map(setting));
    expect(results.flat()).toEqual([{ value: '3s' }, { value: '1500ms' }, { value: 'on' }]);
  });
});

describe.skipIf(postgresAbsence !== null)(`connections beside one that is silent${absent}`, () => {
  const bench = usePostgresBench();

  test('are replaced if they were idle for as long, and kept if they answered meanwhile', async () => {
    const clock = createFakeClock();
    const limits = { statementMs: 60_000, lockMs: 4_000 };
    const lanes = new Lanes(3, { target: readTarget(bench.url), limits, callsFunctions: true, clock });
    onTestFinished(() => lanes.close());
    await lanes.opened;
    const found = new Set(Array.from({ length: 100 }, (_, number) => lanes.of(number)));
    const [silent, answering, idle] = [...found] as [KeptConnection, KeptConnection, KeptConnection];
    expect(found.size).toBe(3);
    const pidOf = async (lane: KeptConnection) => {
      const [answer] = await lane.send([{ text: 'SELECT pg_backend_pid() AS pid' }]);
      return answer?.rows[0] as unknown;
    };
    const before = [await pidOf(idle), await pidOf(answering)];
    clock.advance(1_000);
    const lost = rejection(silent.send([{ text: 'SELECT pg_sleep(60)' }]));
    clock.advance(31_000);
    await pidOf(answering);
    clock.advance(31_000);
    expect(await lost).toMatchObject({ reason: 'slow' });
    await eventually('the idle one is closed', () => idle.fault !== null);
    expect(answering.fault).toBeNull();
    const passTime = limitedTime(clock);
    await eventually('all are open again', () => {
      passTime();
      return silent.fault === null && idle.fault === null;
    });
    expect(await pidOf(answering)).toEqual(before[1]);
    expect(await pidOf(idle)).not.toEqual(before[0]);
  });
});
