import { isRefusal } from '../../shared/errors.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import type { Identified } from '../stages.ts';
import { readBodyEarly, requestDigest } from './claim-request.ts';
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
  const endRead = claims.read(keyId);
  // Too many of its key wait already: it takes a slot as any other request.
  if (endRead === null) return null;
  try {
    const body = await readBodyEarly(exchange);
    if (isRefusal(body)) return refused(body);
    const request = requestDigest(exchange, body);
    const run = await claims.findLeft(keyId, request);
    const { signal } = exchange.interruption;
    if (signal.aborted) return null;
    if (run === undefined) return await joinLeftElsewhere(request, joiner, exchange, claims);
    const { asked } = run;
    const leave = asked === null ? null : claims.join(run);
    if (leave === null || asked === null) return null;
    exchange.body = null;
    return await joinAnswer(run, asked, joiner, exchange).finally(leave);
  } finally {
    endRead();
  }
}

async function joinLeftElsewhere(
  request: string,
  joiner: Joiner,
  exchange: Exchange,
  { peers }: Ports['claims'],
): Promise<ExchangeResult | null> {
  if (peers === null) return null;
  const wanted = { kind: 'retry', keyId: joiner.key.id, request } as const;
  // Where they can't be asked, it runs as any other request.
  const found = await peers
    .join(wanted, null, exchange.interruption.signal)
    .catch(() => 'unreachable' as const);
  if (typeof found === 'string') return null;
  exchange.body = null;
  return joinFound(found, asItIs, joiner, exchange);
}
