import { isRefusal } from '../../shared/errors.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import type { Identified } from '../stages.ts';
import { requestDigest } from './claim-request.ts';
import { dropBody, readBodyEarly } from './early-body.ts';
import { joinAnswer } from './join-answer.ts';
import type { Joiner } from './join-answer.ts';
import { asItIs, joinFound } from './join-elsewhere.ts';

/** How often a request was sent before, as libraries of OpenAI say it of a retry. */
const retryPattern = /^[1-9]\d{0,5}$/;

/**
 * Has a request that its library says is a retry join the same request of its key, byte for byte, whose client has gone: what it
 * was sent for is still being generated, or was not received. Returns how that has ended; `null` where there is none, and
 * then the exchange has a run of its own, which is kept for its own retries.
 */
export async function joinRetryOrKeep(
  { key }: Identified,
  joinRetriesMs: number,
  exchange: Exchange,
  { claims }: Pick<Ports, 'claims'>,
): Promise<ExchangeResult | null> {
  const { client, interruption, requestId } = exchange;
  if (retryPattern.test(client.retryCount ?? '')) {
    const joined = await joinLeft({ key, place: null }, exchange, claims);
    if (joined !== null) return joined;
    if (interruption.signal.aborted) return interruptedBy(interruption.signal, null);
  }
  exchange.claim = claims.beginUnnamed(key.id, joinRetriesMs, requestId);
  return null;
}

/** Joins the request whose client has gone, here or in another process; `null` where there is none that can be joined. */
async function joinLeft(
  joiner: Joiner,
  exchange: Exchange,
  claims: Ports['claims'],
): Promise<ExchangeResult | null> {
  const keyId = joiner.key.id;
  const body = await readBodyEarly(exchange, keyId, claims);
  // Where too many of its key wait already, it runs on its own, and takes a slot.
  if (isRefusal(body)) return body.code === 'concurrency_limit_exceeded' ? null : refused(body);
  const request = requestDigest(exchange, body);
  const left = await claims.joinLeft(keyId, request);
  if (left === null)
    return exchange.interruption.signal.aborted ? null : joinLeftElsewhere(request, joiner, exchange, claims);
  dropBody(exchange);
  return joinAnswer(left.run, left.asked, joiner, exchange).finally(left.leave);
}

async function joinLeftElsewhere(
  request: string,
  joiner: Joiner,
  exchange: Exchange,
  claims: Ports['claims'],
): Promise<ExchangeResult | null> {
  const { peers } = claims;
  const endAsk = peers === null ? null : claims.ask(joiner.key.id);
  if (peers === null || endAsk === null) return null;
  const { signal } = exchange.interruption;
  const wanted = { kind: 'retry', keyId: joiner.key.id, request } as const;
  // Where they can't be asked, it runs on its own.
  const asking = peers.join(wanted, null, signal).catch(() => 'unreachable' as const);
  const found = await asking.finally(endAsk);
  if (typeof found === 'string') return null;
  dropBody(exchange);
  const joined = await joinFound(found, asItIs, joiner, exchange);
  // Only this process knows whether its client has the end: without it, the answer is kept for a further retry.
  if (joined.kind === 'joined' && !exchange.delivery.hasLeft) found.tellDelivered();
  return joined;
}
