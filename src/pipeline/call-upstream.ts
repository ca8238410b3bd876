import { readUpstreamError } from '../protocol/upstream/read-error.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports.ts';
import type { Destination, OfferedModel } from '../domain/routing.ts';
import { dialects } from './dialects.ts';
import { failedEnding, faultEnding } from './endings.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/** How much of an upstream's error body is read, in bytes. */
const maxErrorBytes = 65_536;

/** Sends the request upstream; returns the answer once its head says that one is coming. */
export async function callUpstream(
  request: TextRequest,
  { model, route }: Destination,
  exchange: Exchange,
  ports: Ports,
): Promise<UpstreamAnswer | Ending> {
  const { signal } = exchange.interruption;
  const { path, body } = dialects[route.speech.dialect].writeRequest(
    capped(request, model, exchange, ports),
    route.model,
  );
  const answer = await ports.upstreams.call(
    { upstream: route.upstream, method: 'POST', path, body, stream: request.stream },
    signal,
  );
  if ('fault' in answer) return faultEnding(answer, signal, null);
  if (answer.status >= 200 && answer.status < 300) return answer;
  const errorText = await readErrorBody(answer);
  if (typeof errorText !== 'string') return faultEnding(errorText, signal, null);
  const refusal = readUpstreamError(answer.status, errorText, answer.retryAfterMs);
  return { ...failedEnding({ refusal, usage: null }), cause: `status ${answer.status}` };
}

/** A hold that is to be a bound needs a cap on the answer, whether the client gave one or not. */
function capped(request: TextRequest, model: OfferedModel, { notes }: Exchange, ports: Ports): TextRequest {
  if (ports.balanceMode === 'soft' || notes.holdNanos === null || request.maxOutputTokens !== null)
    return request;
  return { ...request, maxOutputTokens: model.holdTokens };
}

async function readErrorBody(answer: UpstreamAnswer): Promise<string | UpstreamFault> {
  const decoder = new TextDecoder();
  let text = '';
  while (text.length < maxErrorBytes) {
    const part = await answer.read();
    if (part === null) break;
    if ('fault' in part) return part.fault === 'interrupted' ? part : text;
    text += decoder.decode(part, { stream: true });
  }
  answer.release();
  return text;
}
