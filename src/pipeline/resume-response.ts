import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import { refuseIfAway } from '../domain/storage-refusal.ts';
import { processSilent, tooManyJoins, tooManyLookUps, unknownResponse } from './claims/claim-refusals.ts';
import type { AnswerSource } from './claims/claimed-run.ts';
import { joinAnswer, waitForRun } from './claims/join-answer.ts';
import type { Joiner } from './claims/join-answer.ts';
import { joinElsewhere } from './claims/join-elsewhere.ts';
import type { ResponseAction } from './claims/peers.ts';
import { findResponse } from './claims/response-state.ts';
import { serveResponse } from './claims/serve-peer.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import { refused } from './results.ts';
import type { ExchangeResult } from './results.ts';
import { identify, runRequest } from './run-request.ts';

/** An id of a response, which is made of that of its request. */
const responseIdPattern = /^resp_([0-9a-f]{32})$/;

/**
 * Sends a client all events of a response of its key behind one of them, -1 for all, as its request has got them, or would have
 * got them. Never rejects.
 */
export function runResumedStream(
  responseId: string,
  after: number,
  client: ClientConnection,
  ports: Ports,
): Promise<void> {
  return runRequest('responses', client, ports, async (exchange): Promise<ExchangeResult> => {
    const identified = await identify(exchange, ports);
    if (isRefusal(identified)) return refused(identified);
    const { key } = identified;
    const place = { run: null, number: after };
    const requestId = requestIdOf(responseId);
    if (requestId === null) return refused(unknownResponse());
    const run = findResponse(key.id, requestId, ports.claims);
    if (run === undefined) return streamElsewhere(requestId, { key, place }, exchange, ports);
    const leave = ports.claims.join(run);
    if (leave === null) return refused(tooManyJoins());
    try {
      const stopped = await waitForRun(run, exchange);
      if (stopped !== null) return stopped;
      const { asked, phase } = run;
      if (asked === null || phase === 'freed') return refused(unknownResponse());
      return await joinAnswer(run, asStream(asked), { key, place }, exchange);
    } finally {
      leave();
    }
  });
}

/** The same of a response of another process. */
async function streamElsewhere(
  requestId: string,
  joiner: Joiner,
  exchange: Exchange,
  { claims }: Ports,
): Promise<ExchangeResult> {
  const wanted = { kind: 'request', keyId: joiner.key.id, requestId } as const;
  const joined = await joinElsewhere(wanted, { owner: null, as: asResponse }, joiner, exchange, claims);
  return joined === 'none' ? refused(unknownResponse()) : joined;
}

/**
 * The `response` object of a response of a key, as JSON, after it was cancelled for all who wait for it, where that is asked
 * and it has not ended before.
 */
export async function readResponse(
  responseId: string,
  action: ResponseAction,
  { id: keyId }: ApiKey,
  ports: Pick<Ports, 'claims' | 'inFlight'>,
): Promise<string | Refusal> {
  const requestId = requestIdOf(responseId);
  if (requestId === null) return unknownResponse();
  const wanted = { kind: 'request', keyId, requestId } as const;
  const { peers } = ports.claims;
  const own = await serveResponse(wanted, action, ports);
  if (own !== null || peers === null) return own ?? unknownResponse();
  const endAsk = ports.claims.ask(keyId);
  if (endAsk === null) return tooManyLookUps();
  const found = await peers.respond(wanted, action).catch(refuseIfAway).finally(endAsk);
  if (isRefusal(found)) return found;
  if (found === 'none') return unknownResponse();
  return found === 'unreachable' ? processSilent() : found.body;
}

const asStream = (asked: AnswerSource): AnswerSource => ({
  ...asked,
  request: { ...asked.request, stream: true },
});

/** A chat completion is no response. */
const asResponse = (asked: AnswerSource): AnswerSource | null =>
  asked.request.responses === null ? null : asStream(asked);

/** The request that a response answers; `null` where it is the id of no response. */
function requestIdOf(responseId: string): string | null {
  const [, digits] = responseIdPattern.exec(responseId) ?? [];
  return digits === undefined ? null : `req_${digits}`;
}
