import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { formatUsd } from '../shared/money.ts';
import { claimOf } from '../domain/budgets/budget.ts';
import type { BudgetClaim } from '../domain/budgets/budget.ts';
import type { OpenedRecord, RecordBeginning, Reservation } from '../domain/consumption.ts';
import { costOf, holdFor, noTokens } from '../domain/pricing.ts';
import type { Route } from '../domain/routing.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { Dispatched, PassthroughWork, Recorded, TextWork } from './stages.ts';

/** `retry-after` for money held by the key's own requests, in milliseconds. A guess: when they end is unknown. */
const heldRetryMs = 1_000;

/**
 * Begins the consumption record of a request that is about to be sent upstream, and holds what it may cost. For a key
 * without a balance, the record is written while the upstream call starts; if the database is failing, before the call:
 * a call that can't be recorded is not made. The record must exist before the client gets a byte.
 */
export async function reserve(
  dispatched: Dispatched,
  { requestId, arrivedAtMs: createdAtMs, arrivedMs, protocol }: Exchange,
  { balanceMode, clock, records, telemetry }: Ports,
): Promise<Recorded | Refusal> {
  const { key, admission, work, dispatchedMs } = dispatched;
  const wanted = wantedOf(work, balanceMode);
  const leastNanos = balanceMode === 'strict' ? wanted.nanos : 1;
  const { model, upstream, mode, price } = wanted.record;
  const queuedMs = dispatchedMs - arrivedMs;
  const { tag } = admission;
  const begun = { keyId: key.id, createdAtMs, protocol, queuedMs, model, upstream, mode, price, tag };
  const hold = { nanos: wanted.nanos, leastNanos };
  try {
    if (key.budget === null) {
      const reservation = await records.open({ ...begun, requestId, hold });
      if (!reservation.granted) return balanceRefusal(reservation, leastNanos);
      const holdNanos = reservation.holdNanos ?? 0;
      return { ...dispatched, stage: 'recorded', begun: { ...begun, holdNanos }, reservation };
    }
    const budget = claimOf(key.id, key.budget, clock.now());
    const reservation = await records.open({ ...begun, requestId, hold, budget });
    if (!reservation.granted) return spendingRefusal(reservation, budget, leastNanos, clock.now());
    return { ...dispatched, stage: 'recorded', begun: beginIn(budget, begun, reservation), reservation };
  } catch (error) {
    telemetry.fault('consumption record not begun', error);
    return storageUnavailable();
  }
}

/** The first fields of the record, and what the request may cost in nano-USD. */
function wantedOf(
  work: TextWork | PassthroughWork,
  balanceMode: Ports['balanceMode'],
): {
  readonly record: Pick<OpenedRecord, 'model' | 'upstream' | 'mode' | 'price'>;
  readonly nanos: number;
} {
  if (work.kind === 'passthrough') {
    // A passthrough record has the path in its `model` field.
    const { path: model, upstream, price } = work;
    return { record: { model, upstream, mode: 'sync', price }, nanos: costOf(noTokens, price) };
  }
  const { request, model: offered, routes } = work;
  const { id: model, price, holdTokens } = offered;
  const { maxOutputTokens } = request;
  const least = leastOutputTokens(routes);
  const nanos = holdFor(
    { ...request, maxOutputTokens: maxOutputTokens === null ? null : Math.max(maxOutputTokens, least) },
    price,
    { holdTokens: Math.max(holdTokens, least), strict: balanceMode === 'strict' },
  );
  const mode = request.stream ? 'stream' : 'sync';
  return { record: { model, upstream: routes[0]?.upstream ?? '', mode, price }, nanos };
}

/** The smallest output cap that every upstream takes: a smaller one is raised to it, and the hold must cover that. */
export function leastOutputTokens(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ dialect }) => dialect.leastOutputTokens));
}

/** How a request of a key with a budget was begun: it counts in the period in which its hold was taken. */
function beginIn(
  { id, startMs, endMs, levelNanos }: BudgetClaim,
  begun: Omit<RecordBeginning, 'holdNanos' | 'budget'>,
  { balanceNanos, holdNanos, period }: Extract<Reservation, { granted: true }>,
): RecordBeginning {
  const held = holdNanos ?? 0;
  const bounds = { startMs: period?.startMs ?? startMs, endMs: period?.endMs ?? endMs };
  const counted = { id, ...bounds, holdNanos: held, levelNanos };
  return { ...begun, holdNanos: balanceNanos === null ? 0 : held, budget: counted };
}

type Refused = Extract<Reservation, { granted: false }>;

/** The refusal for a key with a budget: for its balance, if that has no room, as it may stay so for longer. */
function spendingRefusal(
  refused: Refused,
  { limitNanos, endMs: claimedEndMs }: BudgetClaim,
  neededNanos: number,
  nowMs: number,
): Refusal {
  const { balanceNanos, period } = refused;
  if (balanceNanos !== null && balanceNanos < neededNanos) return balanceRefusal(refused, neededNanos);
  const { endMs = claimedEndMs, spentNanos = limitNanos, heldNanos = 0 } = period ?? {};
  const [amount, needed] = [formatUsd(limitNanos), formatUsd(neededNanos)];
  const refillsAt = new Date(endMs).toISOString();
  const budget = { source: 'key', amount, refillsAt } as const;
  if (heldNanos > 0 && limitNanos - spentNanos >= neededNanos)
    return refuse(
      'budget_held',
      `Of this key's budget of ${amount} USD, ${formatUsd(spentNanos)} USD are spent and ${formatUsd(heldNanos)} USD held by ` +
        `its requests in progress; this request needs ${needed} USD. Wait for one of them to end.`,
      { budget, retryAfterMs: heldRetryMs },
    );
  return refuse(
    'budget_exhausted',
    spentNanos >= limitNanos
      ? `This key's budget of ${amount} USD is used up. It is full again at ${refillsAt}.`
      : `Of this key's budget of ${amount} USD, ${formatUsd(spentNanos)} USD are spent, and this request needs ${needed} USD. It is full again at ${refillsAt}.`,
    { budget, retryAfterMs: Math.max(0, endMs - nowMs) },
  );
}

/** The refusal for a key that has spent its balance, or has it held by running requests. */
function balanceRefusal({ balanceNanos: free, heldNanos }: Refused, neededNanos: number): Refusal {
  const balanceNanos = free ?? 0;
  const [balance, needed] = [formatUsd(balanceNanos), formatUsd(neededNanos)];
  if (heldNanos > 0 && balanceNanos + heldNanos >= neededNanos)
    return refuse(
      'balance_held',
      `This key has ${balance} USD available and ${formatUsd(heldNanos)} USD held by its requests in progress; ` +
        `this request needs ${needed} USD. Wait for one of them to end.`,
      { retryAfterMs: heldRetryMs },
    );
  return refuse(
    'insufficient_balance',
    balanceNanos <= 0
      ? `This key's balance is used up (${balance} USD). Ask the operator to top it up.`
      : `This key's balance is ${balance} USD, and this request needs ${needed} USD. Ask the operator to top it up.`,
  );
}
