import { readUpstreamError } from '../protocol/upstream/read-error.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports.ts';
import type { Route } from '../domain/routing.ts';
import { readParts } from './answer-parts.ts';
import type { AnswerPart } from './answer-parts.ts';
import { dialects } from './dialects.ts';
import { failedEnding, faultEnding } from './endings.ts';
import type { FailedEnding } from './endings.ts';
import type { Exchange, Ports } from './exchange.ts';
import { watchAttempt } from './watch-attempt.ts';
import type { FailedAttempt, WatchedAttempt } from './watch-attempt.ts';

/** How much of an upstream's error body is read, in bytes. */
const maxErrorBytes = 65_536;

/** An answer of which the first good event has come: nothing else is tried from here on. */
export interface OpenedAnswer {
  readonly first: AnswerPart;
  next(): Promise<AnswerPart>;
  /** Lets go of what is still to come. */
  release(): void;
}

/** Sends the request to one upstream, and waits for the first good event of its answer. */
export async function attempt(
  request: TextRequest,
  route: Route,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedAttempt> {
  const { notes, interruption } = exchange;
  const watched = watchAttempt(route, exchange, ports);
  const { trace } = watched;
  const { dialect, variation } = route.speech;
  const { path, body } = dialects[dialect].writeRequest(request, route.model, variation);
  const spentMs = watched.startedMs - (notes.dispatchedMs ?? watched.startedMs);
  const answer = await ports.upstreams.call(
    { upstream: route.upstream, method: 'POST', path, body, stream: request.stream, spentMs, trace },
    interruption.signal,
  );
  if ('fault' in answer) return watched.failed(faultEnding(answer, interruption.signal, null), answer.fault);
  if (answer.status >= 200 && answer.status < 300)
    return awaitFirstPart(answer, route, request.stream, watched, interruption.signal);
  return watched.failed(await readErrorAnswer(answer, interruption.signal), answer.status);
}

async function awaitFirstPart(
  answer: UpstreamAnswer,
  { speech }: Route,
  streamAsked: boolean,
  watched: WatchedAttempt,
  signal: AbortSignal,
): Promise<OpenedAnswer | FailedAttempt> {
  const { contentType } = answer;
  const { dialect, finishReason } = speech;
  const reader = createReader(dialects[dialect], { contentType, streamAsked, finishReason });
  watched.reads(reader.answer.violations);
  const read = readParts(answer, reader, signal);
  let first = await read();
  while (first.deltas.length === 0 && first.ending === null) first = await read();
  if (first.deltas.length === 0 && first.ending !== null && 'refusal' in first.ending) {
    answer.release();
    return watched.failed(first.ending, null);
  }
  watched.opened();
  watched.sees(first);
  const next = async (): Promise<AnswerPart> => {
    const part = await read();
    watched.sees(part);
    return part;
  };
  return { first, next, release: () => answer.release() };
}

async function readErrorAnswer(answer: UpstreamAnswer, signal: AbortSignal): Promise<FailedEnding> {
  const text = await readErrorBody(answer);
  if (typeof text !== 'string') return faultEnding(text, signal, null);
  const refusal = readUpstreamError(answer.status, text, answer.retryAfterMs);
  return { ...failedEnding({ refusal, usage: null }), cause: `status ${answer.status}` };
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
