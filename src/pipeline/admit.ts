import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/api-key.ts';
import { limitRefusal } from '../domain/limits.ts';
import type { Exchange, Ports } from './exchange.ts';

/** Takes one of the key's slots and counts a start, or says which limit stands in the way. */
export async function admit(key: ApiKey, exchange: Exchange, ports: Ports): Promise<Refusal | null> {
  if (!ports.inFlight.accepting)
    return refuse('draining', 'This server is shutting down. Try again: another one will answer.', {
      retryAfterMs: 1_000,
    });
  const limits = { ...ports.defaultLimits, ...key.limits };
  const askedMs = ports.clock.monotonicMs();
  const standing = await ports.limiter.start(
    key.id,
    exchange.requestId,
    limits,
    exchange.interruption.signal,
  );
  exchange.notes.admittedMs = ports.clock.monotonicMs();
  exchange.notes.slotWaitMs = exchange.notes.admittedMs - askedMs;
  exchange.notes.limits = limits;
  exchange.notes.standing = standing;
  return limitRefusal(standing, limits);
}
