import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/api-key.ts';
import { limitRefusal } from '../domain/limits.ts';
import { authenticate } from './authenticate.ts';
import type { Exchange, Ports } from './exchange.ts';

/**
 * Takes one of the key's slots and counts a start, or says which limit stands in the way. A request that may have waited
 * for its slot is held to what is true after the wait: nothing begins once draining has begun, and the key is looked up
 * again. Returns the key by which the request runs.
 */
export async function admit(key: ApiKey, exchange: Exchange, ports: Ports): Promise<ApiKey | Refusal> {
  const { clock, inFlight, limiter } = ports;
  if (!inFlight.accepting) return draining();
  const limits = { ...ports.defaultLimits, ...key.limits };
  const mayWait = limits.queueWaitMs > 0;
  const { signal } = exchange.interruption;
  const askedMs = clock.monotonicMs();
  const standing = await limiter.acquire(
    key.id,
    exchange.requestId,
    limits,
    mayWait ? AbortSignal.any([signal, inFlight.draining]) : signal,
  );
  exchange.notes.admittedMs = clock.monotonicMs();
  exchange.notes.slotWaitMs = exchange.notes.admittedMs - askedMs;
  exchange.notes.limits = limits;
  exchange.notes.standing = standing;
  if (!inFlight.accepting) return draining();
  const limited = limitRefusal(standing, limits);
  if (limited !== null || !mayWait) return limited ?? key;
  const found = await authenticate(exchange.client.authorization, ports.keys);
  if (!isRefusal(found)) exchange.notes.key = found;
  return found;
}

function draining(): Refusal {
  return refuse('draining', 'This server is shutting down. Try again: another one will answer.', {
    retryAfterMs: 1_000,
  });
}
