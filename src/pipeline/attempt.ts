import { readUpstreamError } from '../protocol/upstream/read-error.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { Clock, UpstreamAnswer, UpstreamFault } from '../domain/ports.ts';
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

/** How long that may take, in milliseconds. */
const errorBodyMs = 2_000;

/** An answer of which the first good event has come: nothing else is tried from here on. */
export interface OpenedAnswer {
  readonly first: AnswerPart;
  next(): Promise<AnswerPart>;
  /** Lets go of what is still to come. */
  release(): void;
}

/** Where an attempt goes, and what it may use. */
export interface AttemptTerms {
  readonly route: Route;
  /** What is left of the request's time, in milliseconds. */
  readonly leftMs: number;
  readonly fresh: boolean;
}

/** Sends the request to one upstream, and waits for the first good event of its answer. */
export async function attempt(
  request: TextRequest,
  { route, leftMs, fresh }: AttemptTerms,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedAttempt> {
  const { signal } = exchange.interruption;
  const watched = watchAttempt(route, leftMs, exchange, ports);
  const { trace } = watched;
  const { dialect, variation } = route.speech;
  const { path, body } = dialects[dialect].writeRequest(request, route.model, variation);
  const { stream } = request;
  const answer = await ports.upstreams.call(
    { upstream: route.upstream, method: 'POST', path, body, stream, leftMs, fresh, trace },
    signal,
  );
  if ('fault' in answer) return watched.failed(faultEnding(answer, signal, null), answer);
  if (answer.status >= 200 && answer.status < 300)
    return awaitFirstPart(answer, route, stream, watched, signal);
  return watched.failed(await readErrorAnswer(answer, signal, ports.clock), answer);
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
  // A whole body is one event: where its end is bad, none of it is good.
  const isEmpty = first.deltas.length === 0 || reader.isWhole;
  if (isEmpty && first.ending !== null && 'refusal' in first.ending) {
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

/** Statuses of which the body says more than the status does. */
const tellingStatuses = new Set([400, 413, 422]);

async function readErrorAnswer(
  answer: UpstreamAnswer,
  signal: AbortSignal,
  clock: Clock,
): Promise<FailedEnding> {
  const text = tellingStatuses.has(answer.status) ? await readErrorBody(answer, clock) : '';
  answer.release();
  if (typeof text !== 'string') return faultEnding(text, signal, null);
  const refusal = readUpstreamError(answer.status, text, answer.retryAfterMs);
  return { ...failedEnding({ refusal, usage: null }), cause: `status ${answer.status}` };
}

/** As much of the body as comes soon: the status alone says enough to go on with. */
async function readErrorBody(answer: UpstreamAnswer, clock: Clock): Promise<string | UpstreamFault> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.schedule(errorBodyMs, () => late.resolve(null));
  const decoder = new TextDecoder();
  let text = '';
  while (text.length < maxErrorBytes) {
    const part = await Promise.race([answer.read(), late.promise]);
    if (part === null) break;
    if ('fault' in part && part.fault === 'interrupted') return part;
    if ('fault' in part) break;
    text += decoder.decode(part, { stream: true });
  }
  cancel();
  return text;
}
