import type { Actor } from '../../src/domain/audit/audit-line.ts';
import { createAuditTrail } from '../../src/storage/audit/audit-lines.ts';
import { termsOf } from '../../src/domain/budgets/budget.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { writeSpoolLine } from '../../src/storage/spool/spool-lines.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { modelPrice } from './model-price.ts';
import { requestIdFor } from './request-ids.ts';
import { beginningOf, openedRecord, payingKey, plainAttempt, settledRecord } from './stored-rows.ts';
import { createDeliveries } from '../../src/storage/outbox/deliveries.ts';
import { createOutbox } from '../../src/storage/outbox/outbox.ts';
import { openTestEngine } from './test-engine.ts';

/** The time at which the database is used, in milliseconds since 1970, and until when an old secret is valid. */
const usedAtMs = 1_800_000_000_000;
const graceMs = usedAtMs + 3_600_000;

/** Who has changed some of the keys. */
const ada: Actor = { way: 'admin_api', name: 'ada', address: null };

/** A price of one nano-USD per token. */
const price = modelPrice({ input: 1_000_000, output: 1_000_000 });

/** More records than two pages of a copy. */
const plainRecords = 2_100;

/** A name with characters that have a meaning in SQL, in arrays of PostgreSQL, and outside of ASCII. */
export const oddName = `"O'Neil", {NULL} \\ \u{1F600} \u2028 é`;

/** The ids of the requests that the last process left open: one settled in the spool, one lost. */
export const leftOpen = { spooled: requestIdFor('spooled'), lost: requestIdFor('left') };

/** The store over an engine, at the time at which the database is used. */
export function storeOver(engine: Engine): Store {
  return createStore(engine, { nextId: () => randomUUID(), now: () => usedAtMs, report: () => {} });
}

/** The budget of a key, and of its request. */
const poorBudget: Budget = {
  amountNanos: 100,
  per: 'month',
  timeZone: 'Europe/Berlin',
  warnAt: [400],
  raise: { nanos: 7, untilMs: graceMs },
};

/** A request of a key as it begins. */
export function opened(requestId: string, keyId: string, holdNanos: number): OpenedRecord {
  return {
    ...openedRecord,
    requestId,
    keyId,
    price,
    hold: { nanos: holdNanos, leastNanos: 1 },
  };
}

/** How such a request ends: whole, with one token for each nano-USD of its charge. */
export function ended(requestId: string, keyId: string, chargeNanos: number): SettledRecord {
  return {
    ...settledRecord,
    requestId,
    begun: beginningOf(opened(requestId, keyId, 0)),
    attempts: [{ ...plainAttempt, model: oddName }],
    usage: {
      inputTokens: chargeNanos,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 0,
      reasoningTokens: 0,
      totalTokens: chargeNanos,
    },
    usageSource: 'upstream',
    price,
    chargeNanos,
  };
}

/**
 * Makes a database as a process leaves it that was killed: with keys of all kinds, records of all kinds, and, beside it, a
 * spool with a settlement that was not made.
 */
export async function leaveUsedDatabase(path: string): Promise<void> {
  const engine = openTestEngine(path);
  const store = storeOver(engine);
  await createKeys(store);
  await leaveEvents(engine);
  const settings = { after: '[["audit.keep","400d"]]', changes: [] };
  await createAuditTrail(engine, () => usedAtMs).noteConfig(ada, () => settings);
  const numbers = Array.from({ length: plainRecords }, (_, number) => number);
  await Promise.all(numbers.map((number) => store.open(opened(plainId(number), keyOf(number), 100))));
  await Promise.all(
    numbers.map((number) => store.settle(ended(plainId(number), keyOf(number), number % 200))),
  );
  const budgets = [
    termsOf('key', 'key_poor', poorBudget, usedAtMs),
    termsOf('group', groupIdOf('poor'), poorBudget, usedAtMs),
  ];
  const dear = { ...opened(requestIdFor('dear'), 'key_poor', 10), budgets };
  await store.open(dear);
  await store.settle({ ...ended(requestIdFor('dear'), 'key_poor', 50), begun: beginningOf(dear) });
  const closed = ['late', 'closed'].map((name) => requestIdFor(name));
  for (const id of closed) await store.open(opened(id, 'key_a', 7));
  await store.closeAsLost(closed);
  await store.settle(ended(requestIdFor('late'), 'key_a', 5));
  for (const id of Object.values(leftOpen)) await store.open(opened(id, 'key_a', 1_000));
  await engine.close();
  writeFileSync(`${path}-settlements`, writeSpoolLine(ended(leftOpen.spooled, 'key_a', 600)));
}

/** An event that was delivered, and one that waits; balances that fall below the mark add others. */
async function leaveEvents(engine: Engine): Promise<void> {
  const outbox = createOutbox(engine, randomUUID);
  await outbox.storeSettings({ lowBalanceNanos: 900_000, budgetLevels: true });
  await outbox.add(
    ['one', 'two'].map((name) => ({ name, type: 'key.expiring', subject: name, data: { name: oddName } })),
  );
  const deliveries = createDeliveries(engine);
  await deliveries.route([{ name: 'ops', types: ['key.expiring'] }]);
  const [due] = await deliveries.listDue('ops', 1);
  if (due !== undefined) await deliveries.end(due, 'ops', 'delivered', 'status 200');
}

/** The id of a request that ended as most do; four of them arrive in a millisecond. */
function plainId(number: number): string {
  return requestIdFor(String(number), 1 + (number >> 2));
}

function keyOf(number: number): string {
  return number % 3 === 0 ? 'key_free' : 'key_a';
}

async function createKeys(store: Store): Promise<void> {
  const settings = {
    limits: { concurrency: 3, requestsPerMinute: 4, queueWaitMs: 5 },
    models: [oddName, ''],
    allowFrom: ['10.0.0.0/8', '2001:db8::1'],
    tags: ['search', 'chat:2'],
    expiresAt: graceMs,
    lowBalanceNanos: 5,
    group: 'research',
    weight: 7,
    joinRetriesMs: 10_000,
    compatibility: { sampling: 'strict' },
    budget: { amountNanos: 9_000, per: 'week', timeZone: 'Europe/Berlin', warnAt: [500, 800], raise: null },
  } as const;
  await store.createKey({ ...payingKey, id: 'key_a' }, 'hash_a', 1_000_000, ada);
  await store.createKey({ ...payingKey, ...settings, id: 'key_free', name: oddName }, 'hash_free', null);
  await store.createKey({ ...payingKey, id: 'key_poor', name: 'poor', budget: poorBudget }, 'hash_poor', 10);
  await store.createKey({ ...payingKey, id: 'key_gone', name: 'gone' }, 'hash_gone', null);
  await store.revokeKey('key_gone', usedAtMs, ada);
  await store.rotateKey('key_a', 'hash_a_2', graceMs);
  await store.credit({ keyId: 'key_a', nanos: 77, reference: oddName });
  const declared = { name: 'declared', hash: 'hash_declared', ...settings };
  const change = { id: 'key_declared', spareId: 'key_spare', declared };
  await store.storeDeclarations({ changed: [change], removed: [] }, usedAtMs);
}
