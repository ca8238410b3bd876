import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nameOfExpiry, writeEvent } from '../../src/domain/events.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type { EventType, NewEvent } from '../../src/domain/events.ts';
import type { DueDelivery } from '../../src/domain/ports/outbox.ts';
import { createDeliveries } from '../../src/storage/outbox/deliveries.ts';
import { createOutbox, createUpstreamOutages } from '../../src/storage/outbox/outbox.ts';
import type { Store } from '../../src/storage/store.ts';
import type { TimedDatabase } from '../support/timed-sqlite.ts';
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

/** The tables that a test has for itself. */
const ownTables = [
  'webhook_deliveries',
  'outbox',
  'event_settings',
  'upstream_outages',
  'upstream_outage_nodes',
  'owners',
];

/** What the outbox must do over every engine. */
export function describeOutbox(name: string, open: () => Promise<TimedDatabase>): void {
  describe(`${name}: events and deliveries`, () => {
    describeWith(open);
  });
}

function describeWith(open: () => Promise<TimedDatabase>): void {
  let database: TimedDatabase;
  let payers = 0;
  // One for all tests, each with a key of its own: a database on a server takes a second to make.
  beforeAll(async () => void (database = await open()));
  afterAll(() => database.engine.close());
  const setUp = async () => {
    const { engine, move } = database;
    await engine.run(ownTables.map((table) => say(`DELETE FROM ${table}`)));
    const payer = { ...key, id: `key_${++payers}` };
    const deliveries = createDeliveries(engine);
    const due = async (webhook: string) =>
      (await deliveries.listDue(webhook, 50)).map(({ subject, event: { data } }) => [
        subject,
        data['number'],
      ]);
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
      payer,
      outbox: createOutbox(engine, idOf),
      deliveries,
      due,
      first,
      stored,
    };
  };
  describe('events of low balances', () => {
    describeCrossings(setUp);
  });
  describe('deliveries', () => {
    describeDeliveries(setUp);
  });
  describe('webhooks that come and go', () => {
    describeReturns(setUp);
  });
  describe('events of jobs', () => {
    describeJobs(setUp);
  });
}

type SetUp = () => Promise<{
  readonly engine: TimedDatabase['engine'];
  readonly move: (byMs: number) => Promise<void>;
  readonly store: Store;
  /** A key that is not created yet. */
  readonly payer: ApiKey;
  readonly outbox: ReturnType<typeof createOutbox>;
  readonly deliveries: ReturnType<typeof createDeliveries>;
  readonly due: (webhook: string) => Promise<readonly unknown[]>;
  readonly first: (webhook: string) => Promise<DueDelivery>;
  readonly stored: () => Promise<readonly Readonly<Record<string, unknown>>[]>;
}>;

/** Makes one request with a hold and a charge; its id is one of its key's alone. */
async function charge(
  store: Store,
  keyId: string,
  request: number,
  hold: number,
  nanos: number,
): Promise<void> {
  const requestId = `req_${request}_of_${keyId}`;
  const begun = { ...opened(requestId, hold), keyId };
  await store.open(begun);
  await store.settle({ ...settled(requestId, nanos), begun: beginningOf(begun) });
}

function describeCrossings(setUp: SetUp): void {
  test('are added by the settlement that crosses the mark, once, and again after a credit', async () => {
    const { payer, store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100, budgetLevels: false });
    await store.createKey(payer, payer.id, 150);
    await charge(store, payer.id, 1, 40, 50);
    expect(await stored()).toEqual([]);
    await charge(store, payer.id, 2, 40, 1);
    await charge(store, payer.id, 3, 40, 30);
    await store.credit({ keyId: payer.id, nanos: 31, reference: 'exactly 100' });
    await charge(store, payer.id, 4, 0, 100);
    const events = await stored();
    expect(events.map((row) => row['name'])).toEqual(
      [3, 6].map((posting) => `balance.low:${payer.id}:${posting}`),
    );
    expect(JSON.parse(String(events[0]?.['data']))).toEqual({
      key_id: payer.id,
      key_name: 'a',
      balance_nanos: 99,
      low_balance_nanos: 100,
    });
  });

  test('count what is held, so that a hold alone crosses nothing', async () => {
    const { payer, store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100, budgetLevels: false });
    await store.createKey(payer, payer.id, 150);
    const requestId = `req_of_${payer.id}`;
    const begun = { ...opened(requestId, 150), keyId: payer.id };
    await store.open(begun);
    expect(await stored()).toEqual([]);
    await store.settle({ ...settled(requestId, 50), begun: beginningOf(begun) });
    expect(await stored()).toEqual([]);
  });

  test("use the key's own mark, which may change, and its name as it is", async () => {
    const { payer, store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100, budgetLevels: false });
    const name = `"O'Neil", {NULL} \\ 😀`;
    await store.createKey({ ...payer, name, lowBalanceNanos: 500 }, payer.id, 510);
    await charge(store, payer.id, 1, 0, 11);
    const [event] = await stored();
    expect(JSON.parse(String(event?.['data']))).toMatchObject({ key_name: name, low_balance_nanos: 500 });
    await store.updateKey(payer.id, { lowBalanceNanos: null });
    await charge(store, payer.id, 2, 0, 100);
    expect(await stored()).toHaveLength(1);
    await charge(store, payer.id, 3, 0, 300);
    expect(await stored()).toHaveLength(2);
  });

  test('are none where no webhook wants them, where there is no balance, and where none was ever above the mark', async () => {
    const { payer, store, outbox, stored } = await setUp();
    await store.createKey(payer, payer.id, 150);
    await store.createKey({ ...payer, id: `${payer.id}_free` }, `${payer.id}_free`, null);
    await store.createKey({ ...payer, id: `${payer.id}_poor` }, `${payer.id}_poor`, 50);
    await charge(store, payer.id, 1, 0, 100);
    await outbox.storeSettings({ lowBalanceNanos: null, budgetLevels: false });
    await store.credit({ keyId: payer.id, nanos: 100, reference: 'again' });
    await charge(store, payer.id, 2, 0, 100);
    await outbox.storeSettings({ lowBalanceNanos: 100, budgetLevels: false });
    await charge(store, `${payer.id}_free`, 3, 0, 100);
    await charge(store, `${payer.id}_poor`, 4, 0, 10);
    expect(await stored()).toEqual([]);
  });

  test('are exactly the crossings of any history of charges and credits', async () => {
    const { payer, store, outbox, stored } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100, budgetLevels: false });
    let histories = 0;
    const step = fc.record({ isCredit: fc.boolean(), nanos: fc.integer({ min: 1, max: 120 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const keyId = `${payer.id}_${++histories}`;
        await store.createKey({ ...payer, id: keyId }, keyId, 130);
        let sum = 130;
        let postings = 1;
        const expected: string[] = [];
        for (const [at, { isCredit, nanos }] of steps.entries()) {
          postings++;
          const next = sum + (isCredit ? nanos : -nanos);
          if (isCredit) await store.credit({ keyId, nanos, reference: `credit ${at}` });
          else await charge(store, keyId, at, nanos % 50, nanos);
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
    expect(new Set(await due('ops'))).toEqual(
      new Set([
        ['a', 1],
        ['b', 1],
      ]),
    );
    for (let left = 2; left > 0; left--)
      await deliveries.end(await first('ops'), 'ops', 'delivered', 'status 200');
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
    expect(await deliveries.oldestAgeMs(['ops'])).toBe(4_999);
    await move(1);
    expect(await due('ops')).toHaveLength(2);
    await deliveries.end(head, 'ops', 'dead', 'status 500');
    await deliveries.retry(head, 'ops', 5_000, 'late');
    await deliveries.end(head, 'ops', 'delivered', 'late');
    expect(await due('ops')).toEqual([
      ['b', 1],
      ['a', 2],
    ]);
    const {
      deliveries: [dead],
    } = await deliveries.list({ state: 'dead' }, 5, null);
    expect(dead).toMatchObject({ attempts: 2, result: 'status 500', dueAtMs: null });
    expect(await deliveries.count(['ops', 'none'])).toEqual([
      { waiting: 2, dead: 1 },
      { waiting: 0, dead: 0 },
    ]);
  });

  test('an event is resent by its id, to one webhook or all, and its body stays the same', async () => {
    const { payer, store, outbox, deliveries, first } = await setUp();
    await outbox.storeSettings({ lowBalanceNanos: 100, budgetLevels: false });
    await store.createKey(payer, payer.id, 150);
    await charge(store, payer.id, 1, 0, 60);
    await deliveries.route(webhooks);
    const [ops, billing] = [await first('ops'), await first('billing')];
    expect(billing.event).toEqual(ops.event);
    expect(JSON.parse(writeEvent(ops.event))).toMatchObject({
      type: 'balance.low',
      data: { key: { id: payer.id, name: 'a' }, balance: '0.00000009', low_balance: '0.0000001' },
    });
    await deliveries.end(ops, 'ops', 'delivered', 'status 200');
    await deliveries.end(billing, 'billing', 'dead', 'status 500');
    expect(await deliveries.resend(ops.event.id, ['billing'])).toEqual(['billing']);
    expect(await first('billing')).toEqual({ ...billing, attempts: 0 });
    expect(await deliveries.resend(ops.event.id, ['billing', 'gone', 'ops'])).toEqual(['billing', 'ops']);
    expect(await first('ops')).toEqual({ ...ops, attempts: 0 });
    expect(await deliveries.resend('evt_none', ['ops'])).toEqual([]);
  });

  test('lists deliveries in pages, newest first', async () => {
    const { outbox, deliveries } = await setUp();
    await outbox.add(Array.from({ length: 5 }, (_, at) => expiring(`subject ${at}`, at)));
    await deliveries.route(webhooks);
    const seen: number[] = [];
    for (let before: number | null = null, pages = 0; pages < 3; pages++) {
      const page: Awaited<ReturnType<typeof deliveries.list>> = await deliveries.list(
        { webhook: 'ops' },
        2,
        before,
      );
      seen.push(...page.deliveries.map(({ number }) => number));
      before = page.next;
    }
    expect(seen).toHaveLength(5);
    expect(seen).toEqual(seen.toSorted((one, other) => other - one));
  });

  test('removes what ended long ago, but no name that must be remembered; gives up what has no webhook', async () => {
    const { outbox, deliveries, first, stored, move } = await setUp();
    await outbox.add([expiring('a', 1), { ...expiring('b', 1), keptUntilMs: startMs + 400 * dayMs }]);
    await outbox.add([{ ...expiring('c', 1), type: 'ledger.imbalance' }]);
    await deliveries.route(webhooks);
    for (let left = 2; left > 0; left--)
      await deliveries.end(await first('ops'), 'ops', 'delivered', 'status 200');
    await outbox.add([expiring('d', 1)]);
    await deliveries.route([{ name: 'gone', types: ['key.expiring'] }]);
    await move(4 * dayMs);
    await deliveries.clean(webhooks, { givenUpMs: 3 * dayMs, keptMs: 7 * dayMs });
    expect(await deliveries.count(['gone'])).toEqual([{ waiting: 0, dead: 1 }]);
    expect(await stored()).toHaveLength(4);
    await move(8 * dayMs);
    await deliveries.clean(webhooks, { givenUpMs: 3 * dayMs, keptMs: 7 * dayMs });
    expect((await stored()).map((row) => row['name'])).toEqual(['b 1']);
    expect((await deliveries.list({}, 5, null)).deliveries).toEqual([]);
    expect(await outbox.add([{ ...expiring('b', 1) }])).toBe(0);
  });
}

/** What becomes of deliveries when webhooks are removed and come back, and when the newest deliveries are removed. */
function describeReturns(setUp: SetUp): void {
  const ages = { givenUpMs: 3 * dayMs, keptMs: 7 * dayMs };

  test('what waits behind an event that is given up for a removed webhook is due when that comes back', async () => {
    const { outbox, deliveries, due, first, move } = await setUp();
    await outbox.add([expiring('a', 1)]);
    await deliveries.route(webhooks);
    await move(2 * dayMs);
    await outbox.add([expiring('a', 2)]);
    await deliveries.route(webhooks);
    await outbox.add([expiring('a', 3)]);
    await deliveries.route(webhooks);
    await move(2 * dayMs);
    await deliveries.clean([], ages);
    expect(await due('ops')).toEqual([['a', 2]]);
    await deliveries.end(await first('ops'), 'ops', 'delivered', 'status 200');
    expect(await due('ops')).toEqual([['a', 3]]);
    await outbox.add([expiring('a', 4)]);
    await deliveries.route(webhooks);
    await deliveries.clean(webhooks, ages);
    expect(await due('ops')).toEqual([['a', 3]]);
  });

  test('no event is given up by its age for a webhook that is in force: its attempts are counted', async () => {
    const { outbox, deliveries, due, move } = await setUp();
    await outbox.add([expiring('a', 1)]);
    await deliveries.route(webhooks);
    await move(30 * dayMs);
    await deliveries.clean(webhooks, ages);
    expect(await due('ops')).toEqual([['a', 1]]);
  });

  test('deliveries get higher numbers than those that were removed, so that a page behind a cursor has older ones', async () => {
    const { outbox, deliveries, first, move } = await setUp();
    await outbox.add([expiring('a', 1)]);
    await deliveries.route(webhooks);
    const before = (await deliveries.list({}, 1, null)).deliveries[0]?.number ?? 0;
    await deliveries.end(await first('ops'), 'ops', 'delivered', 'status 200');
    await move(8 * dayMs);
    await deliveries.clean(webhooks, ages);
    await outbox.add([expiring('a', 2), expiring('b', 2)]);
    await deliveries.route(webhooks);
    expect((await deliveries.list({}, 5, before)).deliveries).toEqual([]);
    const numbers = (await deliveries.list({}, 5, null)).deliveries.map(({ number }) => number);
    expect(new Set(numbers).size).toBe(2);
    expect(Math.min(...numbers)).toBeGreaterThan(before);
  });

  test('the oldest one that waits is that of the webhooks in force, and only to them an event is sent again', async () => {
    const { outbox, deliveries, first, move } = await setUp();
    await outbox.add([expiring('a', 1)]);
    await deliveries.route([{ name: 'gone', types: ['key.expiring'] }]);
    await move(1_000);
    await outbox.add([expiring('b', 1)]);
    await deliveries.route(webhooks);
    await move(1_000);
    expect(await deliveries.oldestAgeMs(['ops', 'billing'])).toBe(1_000);
    expect(await deliveries.oldestAgeMs(['gone'])).toBe(2_000);
    expect(await deliveries.oldestAgeMs([])).toBeNull();
    const { event } = await first('gone');
    expect(await deliveries.resend(event.id, ['ops'])).toEqual([]);
    expect(await deliveries.resend(event.id, [])).toEqual([]);
  });

  test('what a clock that was set back by a day made due late is due after the next cleaning, in its order', async () => {
    const { outbox, deliveries, due, first, move } = await setUp();
    await outbox.add([expiring('a', 1), expiring('b', 1)]);
    await deliveries.route(webhooks);
    await deliveries.retry(await first('ops'), 'ops', 3_600_000, 'status 500');
    await outbox.add([expiring('a', 2), expiring('b', 2)]);
    await deliveries.route(webhooks);
    await move(-dayMs);
    await deliveries.clean(webhooks, ages);
    expect(new Set(await due('ops'))).toEqual(
      new Set([
        ['a', 1],
        ['b', 1],
      ]),
    );
    expect(await deliveries.oldestAgeMs(['ops'])).toBe(0);
    await move(dayMs);
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
    const { payer, store, outbox } = await setUp();
    for (const [id, expiresAt] of Object.entries({ a: 50, b: 100, c: 101, d: 90, e: null }))
      await store.createKey({ ...payer, id: payer.id + id, expiresAt }, payer.id + id, null);
    await store.revokeKey(`${payer.id}d`, 1);
    const id = `${payer.id}b`;
    const found = async () => (await outbox.listExpiring(50, 100, '7d')).map((one) => one.id);
    expect(await found()).toEqual([id]);
    await outbox.add([{ ...expiring('a', 1), name: nameOfExpiry(id, '1d', 100) }]);
    expect(await found()).toEqual([id]);
    await outbox.add([{ ...expiring('a', 1), name: nameOfExpiry(id, '7d', 100) }]);
    expect(await found()).toEqual([]);
    await store.updateKey(id, { expiresAt: 99 });
    expect(await found()).toEqual([id]);
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
