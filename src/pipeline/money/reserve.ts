import { termsOf } from '../../domain/budgets/budget.ts';
import type { BudgetTerms } from '../../domain/budgets/budget.ts';
import { budgetRefusal, heldRetryMs } from '../../domain/budgets/refusal.ts';
import type { Need } from '../../domain/budgets/refusal.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import type { Group } from '../../domain/limits/groups.ts';
import type { RecordBeginning, Reservation, OpenedRecord } from '../../domain/money/consumption.ts';
import { holdFor, unknownHiddenTokens } from '../../domain/money/hold-estimate.ts';
import { costOf, noTokens } from '../../domain/money/pricing.ts';
import type { Route } from '../../domain/routing.ts';
import { storageUnavailable } from '../../domain/storage-refusal.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { formatUsd } from '../../shared/money.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import type { Admission, Dispatched, Opening, Recorded, PassthroughWork, TextWork } from '../stages.ts';

/**
 * Begins the consumption record of a request that is about to be sent upstream, and holds what it may cost, unless that was done
 * with its slot. For a key without a balance, the record is begun while the upstream call starts; if the database is failing,
 * before the call: a call that can't be recorded is not made. The record must be begun before the client gets a byte.
 */
export async function reserve(
  dispatched: Dispatched,
  exchange: Exchange,
  ports: Ports,
): Promise<Recorded | Refusal> {
  const { key, work, admission, dispatchedMs } = dispatched;
  const { begun } = admission;
  const queuedMs = dispatchedMs - exchange.arrivedMs;
  const { record, need } = begun?.opening ?? openingFor(key, admission, work, queuedMs, exchange, ports);
  try {
    const reservation = begun?.reservation ?? (await ports.records.open(record));
    if (reservation.granted)
      return {
        ...dispatched,
        stage: 'recorded',
        begun: beginningOf(record, queuedMs, reservation),
        reservation,
      };
    const { budgets, hold } = record;
    const { balanceNanos, periods = [] } = reservation;
    // The balance first, as it may stay without room for longer.
    if (budgets === undefined || (balanceNanos !== null && balanceNanos < hold.leastNanos))
      return balanceRefusal(reservation, need());
    const found = budgets.map((terms, at) => ({ terms, period: periods[at], group: admission.group }));
    return budgetRefusal(found, need(), ports.clock.now());
  } catch (error) {
    ports.telemetry.fault('consumption record not begun', error);
    return storageUnavailable();
  }
}

/** The record of a request as it is to be begun, with the hold of what the request may cost. */
export function openingFor(
  key: ApiKey,
  { tag, group }: Pick<Admission, 'tag' | 'group'>,
  work: TextWork | PassthroughWork,
  queuedMs: number,
  { requestId, protocol }: Pick<Exchange, 'requestId' | 'protocol'>,
  { balanceMode, clock }: Pick<Ports, 'balanceMode' | 'clock'>,
): Opening {
  const wanted = wantedOf(work, balanceMode);
  const leastNanos = balanceMode === 'strict' ? wanted.nanos : 1;
  const { model, upstream, mode, price } = wanted.record;
  const begun = {
    keyId: key.id,
    protocol,
    queuedMs,
    model,
    upstream,
    mode,
    price,
    tag,
    group: group?.name ?? null,
  };
  const record = { ...begun, requestId, hold: { nanos: wanted.nanos, leastNanos } };
  const budgets = allTermsOf(key, group, clock.now());
  return {
    record: budgets === null ? record : { ...record, budgets },
    need: () => needOf(wanted, leastNanos),
  };
}

/** What a request asks of the budgets of its key and of the key's group, in their order; `null` without any. */
function allTermsOf(
  { id, budget }: ApiKey,
  group: Group | null,
  nowMs: number,
): readonly [BudgetTerms, ...BudgetTerms[]] | null {
  const ofKey = budget === null ? null : termsOf('key', id, budget, nowMs);
  if (group === null || group.budget === null) return ofKey === null ? null : [ofKey];
  const ofGroup = termsOf('group', group.id, group.budget, nowMs);
  return ofKey === null ? [ofGroup] : [ofKey, ofGroup];
}

/** What the settlement of a request repeats of its beginning: it counts in the periods in which its hold was taken. */
function beginningOf(
  record: OpenedRecord,
  queuedMs: number,
  { balanceNanos, holdNanos, periods = [] }: Extract<Reservation, { granted: true }>,
): RecordBeginning {
  const { keyId, protocol, mode, model, upstream, tag, group, price, budgets } = record;
  const held = holdNanos ?? 0;
  const begun = { keyId, protocol, queuedMs, model, upstream, mode, price, tag, group, holdNanos: held };
  if (budgets === undefined) return begun;
  const counted = budgets.map((terms, at) => {
    const { id, owner, limitNanos, levels } = terms;
    const { startMs, endMs } = periods[at] ?? terms;
    return { id, owner, limitNanos, levels, startMs, endMs, holdNanos: held };
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

/** What a hold is wanted for. */
interface Wanted {
  /** The first fields of the record. */
  readonly record: Pick<OpenedRecord, 'model' | 'upstream' | 'mode' | 'price'>;
  /** What the request may cost, in nano-USD. */
  readonly nanos: number;
  /** What it is made of, for a refusal; `null` where it has no parts. */
  readonly parts: (() => string) | null;
}

/** The first fields of the record, and what the request may cost. */
function wantedOf(work: TextWork | PassthroughWork, balanceMode: Ports['balanceMode']): Wanted {
  if (work.kind === 'passthrough') {
    // A passthrough record has the path in its `model` field.
    const { path: model, upstream, price } = work;
    const nanos = costOf(noTokens, price);
    return { record: { model, upstream, mode: 'sync', price }, nanos, parts: null };
  }
  const { request, model: offered, routes } = work;
  const { id: model, price, holdTokens, contextTokens = Infinity } = offered;
  const { turns, maxOutputTokens, stream } = request;
  const least = leastOutputTokens(routes);
  const strict = balanceMode === 'strict';
  // A strict hold is a bound, which the list could have too low.
  const most = strict ? Infinity : contextTokens;
  const outputTokens = Math.max(Math.min(maxOutputTokens ?? holdTokens, most), least);
  const hiddenTokens = hiddenTokensOf(routes);
  const holdOf = (output: number, hidden: number): number =>
    holdFor({ turns, maxOutputTokens: output }, price, { holdTokens, strict, hiddenTokens: hidden });
  const nanos = holdOf(outputTokens, hiddenTokens);
  const parts = (): string => {
    const [prompt, asked] = [holdOf(0, 0), holdOf(outputTokens, 0)];
    const added = nanos > asked ? `, ${formatUsd(nanos - asked)} for what the upstream may add` : '';
    return `prompt ${formatUsd(prompt)}, answer up to ${formatUsd(asked - prompt)}${added}`;
  };
  const mode = stream ? 'stream' : 'sync';
  return { record: { model, upstream: routes[0]?.upstream ?? '', mode, price }, nanos, parts };
}

/** What a request needs to be sent: all that it may cost, with its parts, or anything at all, which is no amount to be told. */
function needOf({ nanos, parts }: Wanted, neededNanos: number): Need {
  if (nanos !== neededNanos)
    return { nanos: neededNanos, words: 'some of it, as its cost is not known beforehand' };
  const needed = `${formatUsd(neededNanos)} USD`;
  return { nanos: neededNanos, words: parts === null ? needed : `${needed} (${parts()})` };
}

/** The smallest output cap that every upstream takes: a smaller one is raised to it, and the hold must cover that. */
export function leastOutputTokens(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ dialect }) => dialect.leastOutputTokens));
}

/** The longest prompt that one of the routes may add, in tokens. */
export function hiddenTokensOf(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ hidden }) => hidden?.tokens ?? unknownHiddenTokens));
}
