import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { formatUsd } from '../shared/money.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { Reservation } from '../domain/consumption.ts';
import { holdFor } from '../domain/pricing.ts';
import type { Destination } from '../domain/routing.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import type { Exchange, Ports } from './exchange.ts';

/** When a key may ask again whose balance is held by its own requests, in milliseconds: nobody can know. */
const heldRetryMs = 1_000;

/**
 * Begins the consumption record and sets aside what the request may cost. For a key without a balance it is written
 * while the upstream call starts; it must be there before the client gets a byte: what can't be recorded is not served.
 */
export async function reserve(
  key: ApiKey,
  request: TextRequest,
  { model: offered, routes: [first] }: Destination,
  exchange: Exchange,
  ports: Ports,
): Promise<Refusal | null> {
  const { notes } = exchange;
  const { id: model, price, holdTokens } = offered;
  const strict = ports.balanceMode === 'strict';
  const nanos = holdFor(request, price, { holdTokens, strict });
  notes.dispatchedMs = ports.clock.monotonicMs();
  try {
    const reservation = await ports.records.open({
      requestId: exchange.requestId,
      keyId: key.id,
      createdAt: exchange.arrivedAt,
      protocol: exchange.protocol,
      mode: request.stream ? 'stream' : 'sync',
      model,
      upstream: first?.upstream ?? '',
      queuedMs: notes.dispatchedMs - exchange.arrivedMs,
      price,
      hold: { nanos, leastNanos: strict ? nanos : 1 },
    });
    if (!reservation.granted) return balanceRefusal(reservation, strict ? nanos : 1);
    notes.holdNanos = reservation.holdNanos;
    notes.balanceNanos = reservation.balanceNanos;
  } catch (error) {
    ports.telemetry.fault('a consumption record could not be begun', error);
    return storageUnavailable();
  }
  notes.recorded = true;
  return null;
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
    `This key's balance is ${balance} USD, and this request needs ${needed} USD. Ask the operator for more.`,
  );
}
