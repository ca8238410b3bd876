import { isRefusal, refuse } from '../shared/errors.ts';
import { override } from '../shared/override.ts';
import type { Refusal } from '../shared/errors.ts';
import { limitRefusal } from '../domain/limits.ts';
import type { LimitDecision, Limits } from '../domain/limits.ts';
import { decideTokens, hasTokenLimit, tokenRefusal } from '../domain/token-limits.ts';
import type { TokenState } from '../domain/token-limits.ts';
import { StorageError, storageUnavailable } from '../domain/storage-refusal.ts';
import { authenticateAt } from './authenticate.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import { readTag } from './read-tag.ts';
import type { Admission, Admitted, Identified, Limited } from './stages.ts';

/**
 * Takes one of the key's slots and counts a start, or returns the limit that was reached. A wrong tag takes neither, nor
 * does a key that has used its tokens. After a wait for a slot the conditions are checked again: draining may have begun,
 * and the key may have been revoked or changed. The limits that the client is told are those at the end of the wait, by
 * which it was decided; a tag that was allowed at its beginning stays.
 */
export async function admit(
  { key }: Identified,
  exchange: Exchange,
  ports: Ports,
): Promise<Admitted | Limited | Refusal> {
  const { requestId, client, interruption } = exchange;
  const { clock, inFlight, limiter } = ports;
  if (!inFlight.accepting) return draining();
  const tag = readTag(client.tag, key);
  if (isRefusal(tag)) return tag;
  const asked = override(ports.defaultLimits, key.limits);
  const tokens = await readTokens(key.id, asked, ports);
  if (isRefusal(tokens)) return tokens;
  const askedMs = clock.monotonicMs();
  const mayWait = asked.queueWaitMs > 0;
  const now = mayWait ? { ...asked, queueWaitMs: 0 } : asked;
  const atOnce = await unlessAway(limiter.acquire(key.id, requestId, now, interruption.signal));
  if (isRefusal(atOnce)) return atOnce;
  const waits = mayWait && atOnce.verdict === 'concurrency';
  const decision = waits ? await unlessAway(waitForSlot(key.id, asked, exchange, ports)) : atOnce;
  if (isRefusal(decision)) return decision;
  const admittedMs = clock.monotonicMs();
  const admissionWith = (limits: Limits): Admission => ({
    limits,
    decision,
    tokens,
    admittedMs,
    slotWaitMs: admittedMs - askedMs,
    tag,
  });
  const stop = (refusal: Refusal, limits = asked): Limited => ({
    stage: 'limited',
    key,
    admission: admissionWith(limits),
    refusal,
  });
  if (!inFlight.accepting) return stop(draining());
  const admitted: Admitted = { stage: 'admitted', key, admission: admissionWith(asked) };
  // It has its slot, which is shown, and stays true if the look-up throws.
  if (waits && decision.verdict === 'granted') exchange.stage = admitted;
  const found = waits ? await authenticateAt(client, ports.keys) : key;
  if (isRefusal(found)) return stop(limitRefusal(decision, asked) ?? found);
  const limits = waits ? override(ports.defaultLimits, found.limits) : asked;
  const limited = limitRefusal(decision, limits);
  if (limited !== null) return stop(limited, limits);
  if (!waits) return admitted;
  // Requests that ran meanwhile may have used them up.
  const left = await readTokens(key.id, limits, ports);
  return isRefusal(left)
    ? stop(left, limits)
    : { stage: 'admitted', key: found, admission: { ...admissionWith(limits), tokens: left } };
}

/** How a key stands to its limits of tokens, `null` without one; the refusal if it has reached one. */
async function readTokens(
  keyId: string,
  limits: Limits,
  { tokenUse }: Pick<Ports, 'tokenUse'>,
): Promise<TokenState | null | Refusal> {
  if (!hasTokenLimit(limits)) return null;
  try {
    const state = decideTokens(limits, await tokenUse.used(keyId));
    return tokenRefusal(state) ?? state;
  } catch (error) {
    if (error instanceof StorageError) return storageUnavailable();
    throw error;
  }
}

/** A decision; a refusal when the database that makes it is away, which its limiter reports. */
async function unlessAway(decided: Promise<LimitDecision>): Promise<LimitDecision | Refusal> {
  try {
    return await decided;
  } catch (error) {
    if (error instanceof StorageError) return storageUnavailable();
    throw error;
  }
}

/** Waits in line. The signal that also ends the wait of a drain is dear, and made for requests that wait alone. */
function waitForSlot(
  keyId: string,
  limits: Limits,
  { requestId, interruption }: Exchange,
  { inFlight, limiter }: Ports,
): Promise<LimitDecision> {
  const signal = AbortSignal.any([interruption.signal, inFlight.draining]);
  return limiter.acquire(keyId, requestId, limits, signal);
}

function draining(): Refusal {
  return refuse('draining', 'This server is shutting down. Try again: another instance will answer.', {
    retryAfterMs: 1_000,
  });
}
