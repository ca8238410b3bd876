import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { formatUsd } from '../../shared/money.ts';
import { claimOf } from '../../domain/budgets/budget.ts';
import type { BudgetClaim } from '../../domain/budgets/budget.ts';
import { budgetRefusal, heldRetryMs } from '../../domain/budgets/refusal.ts';
import type { Need } from '../../domain/budgets/refusal.ts';
import type { Group } from '../../domain/limits/groups.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import type { RecordBeginning, Reservation } from '../../domain/money/consumption.ts';
import { storageUnavailable } from '../../domain/storage-refusal.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import type { Dispatched, Recorded } from '../stages.ts';
import { needOf, wantedOf } from './hold-needs.ts';

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
  const group = admission.group?.name ?? null;
  const begun = { keyId: key.id, createdAtMs, protocol, queuedMs, model, upstream, mode, price, tag, group };
  const hold = { nanos: wanted.nanos, leastNanos };
  try {
    const budgets = claimsOf(key, admission.group, clock.now());
    if (budgets === null) {
      const reservation = await records.open({ ...begun, requestId, hold });
      if (!reservation.granted) return balanceRefusal(reservation, needOf(wanted, leastNanos));
      const holdNanos = reservation.holdNanos ?? 0;
      return { ...dispatched, stage: 'recorded', begun: { ...begun, holdNanos }, reservation };
    }
    const reservation = await records.open({ ...begun, requestId, hold, budgets });
    if (reservation.granted)
      return { ...dispatched, stage: 'recorded', begun: beginIn(budgets, begun, reservation), reservation };
    const { balanceNanos, periods = [] } = reservation;
    // The balance first, as it may stay without room for longer.
    if (balanceNanos !== null && balanceNanos < leastNanos)
      return balanceRefusal(reservation, needOf(wanted, leastNanos));
    const found = budgets.map((claim, at) => ({ claim, period: periods[at], group: admission.group }));
    return budgetRefusal(found, needOf(wanted, leastNanos), clock.now());
  } catch (error) {
    telemetry.fault('consumption record not begun', error);
    return storageUnavailable();
  }
}

/** What a request asks of the budgets of its key and of the key's group, in their order; `null` without any. */
function claimsOf(
  { id, budget }: ApiKey,
  group: Group | null,
  nowMs: number,
): readonly [BudgetClaim, ...BudgetClaim[]] | null {
  const ofKey = budget === null ? null : claimOf('key', id, budget, nowMs);
  if (group === null || group.budget === null) return ofKey === null ? null : [ofKey];
  const ofGroup = claimOf('group', group.id, group.budget, nowMs);
  return ofKey === null ? [ofGroup] : [ofKey, ofGroup];
}

/** How a request with budgets was begun: it counts in the periods in which its hold was taken. */
function beginIn(
  budgets: readonly BudgetClaim[],
  begun: Omit<RecordBeginning, 'holdNanos' | 'budgets'>,
  { balanceNanos, holdNanos, periods = [] }: Extract<Reservation, { granted: true }>,
): RecordBeginning {
  const held = holdNanos ?? 0;
  const counted = budgets.map((claim, at) => {
    const { startMs, endMs } = periods[at] ?? claim;
    return { ...claim, startMs, endMs, holdNanos: held };
  });
  return { ...begun, holdNanos: balanceNanos === null ? 0 : held, budgets: counted };
}

/** The refusal for a key that has spent its balance, or has it held by running requests. */
function balanceRefusal(
  { balanceNanos: free, heldNanos }: Extract<Reservation, { granted: false }>,
  { nanos: neededNanos, words: needed }: Need,
): Refusal {
  const balanceNanos = free ?? 0;
  const balance = formatUsd(balanceNanos);
  if (heldNanos > 0 && balanceNanos + heldNanos >= neededNanos)
    return refuse(
      'balance_held',
      `This key has ${balance} USD available and ${formatUsd(heldNanos)} USD held by its requests in progress; ` +
        `this request needs ${needed}. Wait for one of them to end.`,
      { retryAfterMs: heldRetryMs },
    );
  return refuse(
    'insufficient_balance',
    balanceNanos <= 0
      ? `This key's balance is used up (${balance} USD). Ask the operator to top it up.`
      : `This key's balance is ${balance} USD, and this request needs ${needed}. Ask the operator to top it up.`,
  );
}
