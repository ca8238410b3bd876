import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { formatUsd } from '../shared/money.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { OpenedRecord, Reservation } from '../domain/consumption.ts';
import { holdFor } from '../domain/pricing.ts';
import type { Destination, Route } from '../domain/routing.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import { dialects } from '../protocol/upstream/dialects.ts';
import type { Exchange, Ports } from './exchange.ts';

/** When a key may ask again whose balance is held by its own requests, in milliseconds: nobody can know. */
const heldRetryMs = 1_000;

/**
 * Begins the consumption record and sets aside what the request may cost. For a key without a balance it is written
 * while the upstream call starts, as long as the database takes writes, and before the call when it does not: a call
 * that can't be recorded is not made. It must be there before the client gets a byte.
 */
export async function reserve(
  key: ApiKey,
  request: TextRequest,
  { model: offered, routes }: Destination,
  exchange: Exchange,
  ports: Ports,
): Promise<Refusal | null> {
  const { id: model, price, holdTokens } = offered;
  const strict = ports.balanceMode === 'strict';
  const { maxOutputTokens } = request;
  const least = leastOutputTokens(routes);
  const nanos = holdFor(
    { ...request, maxOutputTokens: maxOutputTokens === null ? null : Math.max(maxOutputTokens, least) },
    price,
    { holdTokens: Math.max(holdTokens, least), strict },
  );
  const mode = request.stream ? 'stream' : 'sync';
  const wanted = { model, upstream: routes[0]?.upstream ?? '', mode, price } as const;
  return beginRecord(wanted, nanos, key, exchange, ports);
}

/** The smallest cap that all of the upstreams take: they raise a smaller one, and the hold has to cover that. */
function leastOutputTokens(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ speech }) => dialects[speech.dialect].leastOutputTokens));
}

/** Begins the record of a request that is about to be sent on, and sets aside the amount that it wants. */
export async function beginRecord(
  wanted: Pick<OpenedRecord, 'model' | 'upstream' | 'mode' | 'price'>,
  nanos: number,
  { id: keyId }: ApiKey,
  { requestId, arrivedAt: createdAt, arrivedMs, protocol, notes }: Exchange,
  { balanceMode, clock, records, telemetry }: Ports,
): Promise<Refusal | null> {
  notes.dispatchedMs = clock.monotonicMs();
  const queuedMs = notes.dispatchedMs - arrivedMs;
  const hold = { nanos, leastNanos: balanceMode === 'strict' ? nanos : 1 };
  try {
    const reservation = await records.open({
      ...wanted,
      hold,
      requestId,
      keyId,
      createdAtMs: createdAt,
      protocol,
      queuedMs,
    });
    notes.recorded = reservation.granted;
    if (!reservation.granted) return balanceRefusal(reservation, hold.leastNanos);
    notes.holdNanos = reservation.holdNanos;
    notes.balanceNanos = reservation.balanceNanos;
    return null;
  } catch (error) {
    telemetry.fault('a consumption record could not be begun', error);
    return storageUnavailable();
  }
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
