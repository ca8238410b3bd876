import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { limitRefusal } from '../domain/limits.ts';
import { authenticate } from './authenticate.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { Admitted, Identified, Limited } from './stages.ts';

/**
 * Takes one of the key's slots and counts a start, or returns the limit that was reached. After a wait for a slot the
 * conditions are checked again: draining may have begun, and the key may have been revoked or changed.
 */
export async function admit(
  { key }: Identified,
  exchange: Exchange,
  ports: Ports,
): Promise<Admitted | Limited | Refusal> {
  const { requestId, client, interruption } = exchange;
  const { clock, inFlight, limiter } = ports;
  if (!inFlight.accepting) return draining();
  const limits = { ...ports.defaultLimits, ...key.limits };
  const mayWait = limits.queueWaitMs > 0;
  const { signal } = interruption;
  const askedMs = clock.monotonicMs();
  const decision = await limiter.acquire(
    key.id,
    requestId,
    limits,
    mayWait ? AbortSignal.any([signal, inFlight.draining]) : signal,
  );
  const admittedMs = clock.monotonicMs();
  const admission = { limits, decision, admittedMs, slotWaitMs: admittedMs - askedMs };
  const stop = (refusal: Refusal): Limited => ({ stage: 'limited', key, admission, refusal });
  if (!inFlight.accepting) return stop(draining());
  const limited = limitRefusal(decision, limits);
  if (limited !== null) return stop(limited);
  const admitted: Admitted = { stage: 'admitted', key, admission };
  if (!mayWait) return admitted;
  // It has its slot, which is shown, and stays true if the look-up throws.
  exchange.stage = admitted;
  const found = await authenticate(client, ports.keys);
  return isRefusal(found) ? stop(found) : { ...admitted, key: found };
}

function draining(): Refusal {
  return refuse('draining', 'This server is shutting down. Try again: another instance will answer.', {
    retryAfterMs: 1_000,
  });
}
