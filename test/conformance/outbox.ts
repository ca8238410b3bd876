import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nameOfExpiry, writeEvent } from '../../src/domain/events.ts';
import type { EventType, NewEvent } from '../../src/domain/events.ts';
import type { DueDelivery } from '../../src/domain/ports/outbox.ts';
import { createDeliveries } from '../../src/storage/outbox/delivery-store.ts';
import { createOutbox, createUpstreamOutages } from '../../src/storage/outbox/outbox-store.ts';
import type { Store } from '../../src/storage/store.ts';
import type { TimedDatabase } from '../support/database-time.ts';
import { propertyRun } from '../support/property-run.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { say } from './engine.ts';
import { joinStore, key, opened, settled, startMs } from './store.ts';

const dayMs = 86_400_000;
const webhooks = [
  { name: 'ops', types: ['balance.low', 'key.expiring'] as readonly EventType[] },
  { name: 'billing', types: ['balance.low'] as readonly EventType[] },
];
const idOf = (): string => randomUUID().replaceAll('-', '');

/** An event of a key that expires. */
function expiring(subject: string, number: number): NewEvent {
  return { name: `${subject} ${number}`, type: 'key.expiring', subject, data: { number } };
}

/** What the outbox must do over every engine. */
export function describeOutbox(name: string, open: () => Promise<TimedDatabase>): void {
  const setUp = async () => {
    const { engine, move } = await open();
    onTestFinished(() => engine.close());
    const deliveries = createDeliveries(engine);
    const due = async (webhook: string) =>
      (await deliveries.listDue(webhook, 50)).map(({ subject, event: { data } }) => [subject, data['number']]);
    const first = async (webhook: string): Promise<DueDelivery> => {
      const [found] = await deliveries.listDue(webhook, 1);
      if (found === undefined) throw new Error('nothing is due');
      return found;
    };
    const stored = async () =>
      (await engine.read([say('SELECT name, data FROM outbox ORDER BY position, created_at, id')])).flat();
    return {
      engine,
      move,
      store: joinStore(engine),
      outbox: createOutbox(engine, idOf),
      deliveries,
      due,
      first,
      stored,
    };
  };
  describe(`${name}: events of low balances`, () => {
    describeCrossings(setUp);
  });
  describe(`${name}: the outbox`, () => {
    describeDeliveries(setUp);
    describeJobs(setUp);
  });
}

type SetUp = () => Promise<{
  readonly engine: TimedDatabase['engine'];
  readonly move: (byMs: number) => Promise<void>;
  readonly store: Store;
  readonly outbox: ReturnType<typeof createOutbox>;
  readonly deliveries: ReturnType<typeof createDeliveries>;
  readonly due: (webhook: string) => Promise<readonly unknown[]>;
  readonly first: (webhook: string) => Promise<DueDelivery>;
  readonly stored: () => Promise<readonly Readonly<Record<string, unknown>>[]>;
}>;

/** Makes one request with a hold and a charge. */
async function charge(store: Store, requestId: string, hold: number, nanos: number, keyId = key.id): Promise<void> {
  const begun = { ...opened(requestId, hold), keyId };
  await store.open(begun);
  await store.settle({ ...settled(requestId, nanos), begun: beginningOf(begun) });
}

function describeCrossings(setUp: SetUp): void {
  test('are added by the settlement that crosses the mark, once, and again after a credit', async () => {
    const { store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100 });
    await store.createKey(key, 'hash', 150);
    await charge(store, 'req_1', 40, 50);
    expect(await stored()).toEqual([]);
    await charge(store, 'req_2', 40, 1);
    await charge(store, 'req_3', 40, 30);
    await store.credit({ keyId: key.id, nanos: 31, reference: 'exactly 100' });
    await charge(store, 'req_4', 0, 100);
    const events = await stored();
    expect(events.map((row) => row['name'])).toEqual(['balance.low:key_a:3', 'balance.low:key_a:6']);
    expect(JSON.parse(String(events[0]?.['data']))).toEqual({
      key_id: 'key_a',
      key_name: 'a',
      balance_nanos: 99,
      low_balance_nanos: 100,
    });
  });

  test('count what is held, so that a hold alone crosses nothing', async () => {
    const { store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100 });
    await store.createKey(key, 'hash', 150);
    await store.open(opened('req_1', 150));
    expect(await stored()).toEqual([]);
    await store.settle({ ...settled('req_1', 50), begun: beginningOf(opened('req_1', 150)) });
    expect(await stored()).toEqual([]);
  });

  test("use the key's own mark, which may change, and its name as it is", async () => {
    const { store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100 });
    const name = `"O'Neil", {NULL} \\ 😀`;
    await store.createKey({ ...key, name, lowBalanceNanos: 500 }, 'hash', 510);
    await charge(store, 'req_1', 0, 11);
    const [event] = await stored();
    expect(JSON.parse(String(event?.['data']))).toMatchObject({ key_name: name, low_balance_nanos: 500 });
    await store.updateKey(key.id, { lowBalanceNanos: null });
    await charge(store, 'req_2', 0, 100);
    expect(await stored()).toHaveLength(1);
    await charge(store, 'req_3', 0, 300);
    expect(await stored()).toHaveLength(2);
  });

  test('are none where no webhook wants them, where there is no balance, and where none was ever above the mark', async () => {
    const { store, outbox, stored } = await setUp();
    await store.createKey(key, 'hash', 150);
    await store.createKey({ ...key, id: 'key_free' }, 'hash of the free one', null);
    await store.createKey({ ...key, id: 'key_poor' }, 'hash of the poor one', 50);
    await charge(store, 'req_1', 0, 100);
    await outbox.storeSettings({ lowBalanceNanos: null });
    await store.credit({ keyId: key.id, nanos: 100, reference: 'again' });
    await charge(store, 'req_2', 0, 100);
    await outbox.storeSettings({ lowBalanceNanos: 100 });
    await charge(store, 'req_3', 0, 100, 'key_free');
    await charge(store, 'req_4', 0, 10, 'key_poor');
    expect(await stored()).toEqual([]);
  });

  test('are exactly the crossings of any history of charges and credits', async () => {
    const { store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100 });
    let histories = 0;
    const step = fc.record({ isCredit: fc.boolean(), nanos: fc.integer({ min: 1, max: 120 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const keyId = `key_${++histories}`;
        await store.createKey({ ...key, id: keyId }, keyId, 130);
        let sum = 130;
        let postings = 1;
        const expected: string[] = [];
        for (const [at, { isCredit, nanos }] of steps.entries()) {
          postings++;
          const next = sum + (isCredit ? nanos : -nanos);
          if (isCredit) await store.credit({ keyId, nanos, reference: `credit ${at}` });
          else await charge(store, `req_${histories}_${at}`, nanos % 50, nanos, keyId);
          if (sum >= 100 && next < 100) expected.push(`balance.low:${keyId}:${postings}`);
          sum = next;
        }
        const names = (await stored()).map((row) => String(row['name']));
        expect(names.filter((name) => name.startsWith(`balance.low:${keyId}:`))).toEqual(expected);
      }),
      propertyRun(15),
    );
  });
}

function describeDeliveries(setUp: SetUp): void {
  test('routes each event once to the webhooks that want it; one of a subject is due behind the earlier ones', async () => {
    const { outbox, deliveries, due, first } = await setUp();
    await outbox.add([expiring('a', 1), expiring('b', 1)]);
    expect(await deliveries.route(webhooks)).toBe(2);
    await outbox.add([expiring('a', 2)]);
    expect(await deliveries.route(webhooks)).toBe(1);
    expect(await deliveries.route(webhooks)).toBe(0);
    expect(await due('billing')).toEqual([]);
    expect((await due('ops')).toSorted()).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    for (let left = 2; left > 0; left--) await deliveries.end(await first('ops'), 'ops', 'delivered', 'status 200');
    expect(await due('ops')).toEqual([['a', 2]]);
  });

  test('a failed attempt waits, holds up its subject alone, and an ended one is not changed any more', async () => {
    const { outbox, deliveries, due, first, move } = await setUp();
    await outbox.add([expiring('a', 1)]);
    await deliveries.route(webhooks);
    await outbox.add([expiring('a', 2), expiring('b', 1)]);
    await deliveries.route(webhooks);
    const head = await first('ops');
    expect(head.event.data).toEqual({ number: 1 });
    await deliveries.retry(head, 'ops', 5_000, 'status 500');
    expect(await due('ops')).toEqual([['b', 1]]);
    await move(4_999);
    expect(await due('ops')).toEqual([['b', 1]]);
    expect(await deliveries.oldestAgeMs()).toBe(4_999);
    await move(1);
    expect(await due('ops')).toHaveLength(2);
    await deliveries.end(head, 'ops', 'dead', 'status 500');
    await deliveries.retry(head, 'ops', 5_000, 'late');
    await deliveries.end(head, 'ops', 'delivered', 'late');
    expect(await due('ops')).toEqual([
      ['b', 1],
      ['a', 2],
    ]);
    const { deliveries: [dead] } = await deliveries.list({ state: 'dead' }, 5, null);
    expect(dead).toMatchObject({ attempts: 2, result: 'status 500', dueAtMs: null });
    expect(await deliveries.count()).toEqual(new Map([['ops', { waiting: 2, dead: 1 }]]));
  });

  test('an event is resent by its id, to one webhook or all, and its body stays the same', async () => {
    const { store, outbox, deliveries, first } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100 });
    await store.createKey(key, 'hash', 150);
    await charge(store, 'req_1', 0, 60);
    await deliveries.route(webhooks);
    const [ops, billing] = [await first('ops'), await first('billing')];
    expect(billing.event).toEqual(ops.event);
    expect(JSON.parse(writeEvent(ops.event))).toMatchObject({
      type: 'balance.low',
      data: { key: { id: 'key_a', name: 'a' }, balance: '0.00000009', low_balance: '0.0000001' },
    });
    await deliveries.end(ops, 'ops', 'delivered', 'status 200');
    await deliveries.end(billing, 'billing', 'dead', 'status 500');
    expect(await deliveries.resend(ops.event.id, 'billing')).toEqual(['billing']);
    expect(await first('billing')).toEqual({ ...billing, attempts: 0 });
    expect(await deliveries.resend(ops.event.id, null)).toEqual(['billing', 'ops']);
    expect(await first('ops')).toEqual({ ...ops, attempts: 0 });
    expect(await deliveries.resend('evt_none', null)).toEqual([]);
  });

  test('lists deliveries in pages, newest first', async () => {
    const { outbox, deliveries } = await setUp();
    await outbox.add(Array.from({ length: 5 }, (_, at) => expiring(`subject ${at}`, at)));
    await deliveries.route(webhooks);
    const seen: number[] = [];
    for (let before: number | null = null, pages = 0; pages < 3; pages++) {
      const page: Awaited<ReturnType<typeof deliveries.list>> = await deliveries.list({ webhook: 'ops' }, 2, before);
      seen.push(...page.deliveries.map(({ number }) => number));
      before = page.next;
    }
    expect(seen).toEqual([5, 4, 3, 2, 1]);
  });

  test('removes what ended long ago, but no name that must be remembered; gives up what has no webhook', async () => {
    const { outbox, deliveries, first, stored, move } = await setUp();
    const now = Number((await first('ops').catch(() => null)) ?? startMs);
    await outbox.add([expiring('a', 1), { ...expiring('b', 1), keptUntilMs: now + 40 * dayMs }]);
    await outbox.add([{ ...expiring('c', 1), type: 'ledger.imbalance' }]);
    await deliveries.route(webhooks);
    for (let left = 2; left > 0; left--) await deliveries.end(await first('ops'), 'ops', 'delivered', 'status 200');
    await outbox.add([expiring('d', 1)]);
    await deliveries.route([{ name: 'gone', types: ['key.expiring'] }]);
    await move(4 * dayMs);
    await deliveries.clean(webhooks, { givenUpMs: 3 * dayMs, keptMs: 7 * dayMs });
    expect(await deliveries.count()).toEqual(new Map([['gone', { waiting: 0, dead: 1 }]]));
    expect(await stored()).toHaveLength(4);
    await move(8 * dayMs);
    await deliveries.clean(webhooks, { givenUpMs: 3 * dayMs, keptMs: 7 * dayMs });
    expect((await stored()).map((row) => row['name'])).toEqual(['b 1']);
    expect((await deliveries.list({}, 5, null)).deliveries).toEqual([]);
    expect(await outbox.add([{ ...expiring('b', 1) }])).toBe(0);
  });
}

function describeJobs(setUp: SetUp): void {
  test('several nodes add one event of a name', async () => {
    const { engine, outbox, stored } = await setUp();
    const other = createOutbox(engine, idOf);
    const added = await Promise.all([outbox.add([expiring('a', 1)]), other.add([expiring('a', 1)])]);
    expect(added.toSorted()).toEqual([0, 1]);
    expect(await stored()).toHaveLength(1);
  });

  test('finds keys in use that expire in a span, until the event of that expiry is added', async () => {
    const { store, outbox } = await setUp();
    for (const [id, expiresAt] of Object.entries({ key_1: 50, key_2: 100, key_3: 101, key_4: 90, key_5: null }))
      await store.createKey({ ...key, id, expiresAt }, id, null);
    await store.revokeKey('key_4', 1);
    const found = async () => (await outbox.listExpiring(50, 100, '7d')).map(({ id }) => id);
    expect(await found()).toEqual(['key_2']);
    await outbox.add([{ ...expiring('a', 1), name: nameOfExpiry('key_2', '1d', 100) }]);
    expect(await found()).toEqual(['key_2']);
    await outbox.add([{ ...expiring('a', 1), name: nameOfExpiry('key_2', '7d', 100) }]);
    expect(await found()).toEqual([]);
    await store.updateKey('key_2', { expiresAt: 99 });
    expect(await found()).toEqual(['key_2']);
  });

  test('an outage that two nodes see begins once, and ends when none of them sees it any more', async () => {
    const { engine, stored } = await setUp();
    const [one, two] = [joinStore(engine), joinStore(engine)];
    await one.renewLease();
    await two.renewLease();
    const [here, there] = [one, two].map((store) => createUpstreamOutages(engine, () => store.owner(), idOf));
    if (here === undefined || there === undefined) throw new Error('two nodes');
    expect(await here.sawUp('big')).toBe(false);
    expect(await Promise.all([here.sawDown('big'), there.sawDown('big')])).toEqual(
      expect.arrayContaining([true, false]),
    );
    expect(await here.sawUp('big')).toBe(false);
    expect(await here.list()).toEqual([{ upstream: 'big', isSeenHere: false }]);
    expect(await there.list()).toEqual([{ upstream: 'big', isSeenHere: true }]);
    expect(await there.sawUp('big')).toBe(true);
    expect(await there.sawUp('big')).toBe(false);
    expect(await here.list()).toEqual([]);
    expect((await stored()).map((row) => String(row['name']).split(':')[0])).toEqual(
      expect.arrayContaining(['upstream.down', 'upstream.up']),
    );
    expect(await stored()).toHaveLength(2);
  });

  test('an outage that only an ended node saw is over for the others, or forgotten with the upstream', async () => {
    const { engine, stored } = await setUp();
    const [one, two] = [joinStore(engine), joinStore(engine)];
    await one.renewLease();
    await two.renewLease();
    const [here, there] = [one, two].map((store) => createUpstreamOutages(engine, () => store.owner(), idOf));
    await there?.sawDown('big');
    await there?.sawDown('gone');
    await here?.forget('gone');
    expect(await here?.list()).toHaveLength(2);
    await two.endLease();
    await here?.forget('gone');
    expect(await here?.sawUp('big')).toBe(true);
    expect(await here?.list()).toEqual([]);
    expect(await stored()).toHaveLength(3);
  });
}
