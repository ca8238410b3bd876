import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import { tooManyJoins, unknownResponse } from './claims/claim-refusals.ts';
import type { ClaimedRun } from './claims/claimed-run.ts';
import { joinAnswer, waitForRun } from './claims/join-answer.ts';
import { responseStateOf } from './claims/response-state.ts';
import type { ClientConnection } from './client-connection.ts';
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
    const run = findResponse(responseId, key, ports);
    if (run === undefined) return refused(unknownResponse());
    const leave = ports.claims.join(run);
    if (leave === null) return refused(tooManyJoins());
    try {
      const stopped = await waitForRun(run, exchange);
      if (stopped !== null) return stopped;
      const { asked, phase } = run;
      if (asked === null || phase === 'freed') return refused(unknownResponse());
      const asStream = { ...asked, request: { ...asked.request, stream: true } };
      const place = { run: null, number: after };
      return await joinAnswer(run, asStream, { key, place }, exchange);
    } finally {
      leave();
    }
  });
}

/** The `response` object of a response of a key, as JSON. */
export function readResponse(
  responseId: string,
  key: ApiKey,
  ports: Pick<Ports, 'claims'>,
): string | Refusal {
  const run = findResponse(responseId, key, ports);
  return (run === undefined ? null : responseStateOf(run)) ?? unknownResponse();
}

/** Cancels a response of a key, for all who wait for it; resolves with its object when that is done, or it has ended before. */
export async function cancelResponse(
  responseId: string,
  key: ApiKey,
  ports: Pick<Ports, 'claims' | 'inFlight'>,
): Promise<string | Refusal> {
  const run = findResponse(responseId, key, ports);
  if (run === undefined) return unknownResponse();
  if (run.settled === null) {
    await ports.inFlight.cancel(run.requestId, key.id);
    await run.over;
  }
  return responseStateOf(run) ?? unknownResponse();
}

/** The run of a response of this process; a chat completion is none, nor is what has not begun. */
function findResponse(
  responseId: string,
  { id }: ApiKey,
  { claims }: Pick<Ports, 'claims'>,
): ClaimedRun | undefined {
  const [, digits] = responseIdPattern.exec(responseId) ?? [];
  const run = claims.findRequest(id, `req_${digits}`);
  return (run?.asked?.request.responses ?? null) === null ? undefined : run;
}
