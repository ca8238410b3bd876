import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { formatUsd } from '../shared/money.ts';
import type { OpenedRecord, Reservation } from '../domain/consumption.ts';
import { costOf, holdFor, noTokens } from '../domain/pricing.ts';
import type { Route } from '../domain/routing.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { Dispatched, PassthroughWork, Recorded, TextWork } from './stages.ts';

/** When a key may ask again whose balance is held by its own requests, in milliseconds. A guess: their ends are unknown. */
const heldRetryMs = 1_000;

/**
 * Begins the consumption record of a request that is about to be sent on, and sets aside what the request may cost. For
 * a key without a balance it is written while the upstream call starts, as long as the database takes writes, and before
 * the call when it does not: a call that can't be recorded is not made. It must be there before the client gets a byte.
 */
export async function reserve(
  dispatched: Dispatched,
  { requestId, arrivedAtMs: createdAtMs, arrivedMs, protocol }: Exchange,
  { balanceMode, records, telemetry }: Ports,
): Promise<Recorded | Refusal> {
  const { key, work, dispatchedMs } = dispatched;
  const wanted = wantedOf(work, balanceMode);
  const leastNanos = balanceMode === 'strict' ? wanted.nanos : 1;
  try {
    const reservation = await records.open({
      ...wanted.record,
      hold: { nanos: wanted.nanos, leastNanos },
      requestId,
      keyId: key.id,
      createdAtMs,
      protocol,
      queuedMs: dispatchedMs - arrivedMs,
    });
    if (!reservation.granted) return balanceRefusal(reservation, leastNanos);
    return { ...dispatched, stage: 'recorded', reservation };
  } catch (error) {
    telemetry.fault('consumption record not begun', error);
    return storageUnavailable();
  }
}

/** What the record begins with, and what the request may cost in nano-USD. */
function wantedOf(
  work: TextWork | PassthroughWork,
  balanceMode: Ports['balanceMode'],
): {
  readonly record: Pick<OpenedRecord, 'model' | 'upstream' | 'mode' | 'price'>;
  readonly nanos: number;
} {
  if (work.kind === 'passthrough') {
    // The path stands in the record where the model does.
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

/** The smallest cap that all of the upstreams take: they raise a smaller one, and the hold has to cover that. */
function leastOutputTokens(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ dialect }) => dialect.leastOutputTokens));
}

/** Whether the key is out of money, or has it tied up in requests that run. */
function balanceRefusal(
  { balanceNanos, heldNanos }: Extract<Reservation, { granted: false }>,
  neededNanos: number,
): Refusal {
  const [balance, needed] = [formatUsd(balanceNanos), formatUsd(neededNanos)];
  if (heldNanos > 0 && balanceNanos + heldNanos >= neededNanos)
    return refuse(
      'balance_held',
      `Of this key's balance ${balance} USD are free and ${formatUsd(heldNanos)} USD are held by its requests in ` +
        `progress; this one needs ${needed} USD. Wait for one of them to end.`,
      { retryAfterMs: heldRetryMs },
    );
  return refuse(
    'insufficient_balance',
    balanceNanos <= 0
      ? `This key's balance is used up (${balance} USD). Ask the operator for more.`
      : `This key's balance is ${balance} USD, and this request needs ${needed} USD. Ask the operator for more.`,
  );
}
