import { readUpstreamError } from '../protocol/upstream/read-error.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { mostTokensOf } from '../domain/pricing.ts';
import type { Route } from '../domain/routing.ts';
import { readParts } from './answer-parts.ts';
import type { AnswerPart } from './answer-parts.ts';
import { dialects } from '../protocol/upstream/dialects.ts';
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
  const { notes } = exchange;
  notes.thoughts = null;
  notes.awaitsWhole = false;
  const onSent = (): void => void (notes.awaitsWhole = !stream);
  const answer = await ports.upstreams.call(
    { upstream: route.upstream, method: 'POST', path, body, stream, leftMs, fresh, trace, onSent },
    signal,
  );
  if ('fault' in answer) {
    // A client that leaves during the next attempt would pay for this one.
    if (answer.fault !== 'interrupted') notes.awaitsWhole = false;
    return watched.failed(faultEnding(answer, signal, null), answer);
  }
  try {
    if (answer.status >= 200 && answer.status < 300)
      return await awaitFirstPart(answer, route, request, watched, exchange, ports);
    notes.awaitsWhole = false;
    return watched.failed(await readErrorAnswer(answer, signal, ports.clock), answer);
  } catch (error) {
    // Nothing else knows of this answer yet: unreleased, its connection would be held until its total deadline.
    answer.release();
    throw error;
  }
}

async function awaitFirstPart(
  answer: UpstreamAnswer,
  { upstream, speech }: Route,
  { turns, stream: streamAsked }: TextRequest,
  watched: WatchedAttempt,
  { notes, interruption: { signal } }: Exchange,
  { telemetry }: Ports,
): Promise<OpenedAnswer | FailedAttempt> {
  const { contentType } = answer;
  const { dialect, finishReason } = speech;
  const sentTokens = mostTokensOf(turns);
  const reader = createReader(dialects[dialect], { contentType, streamAsked, finishReason, sentTokens });
  watched.reads(reader.answer.violations);
  notes.thoughts = reader.answer.thoughts;
  const readPart = readParts(answer, reader, signal);
  const read = async (): Promise<AnswerPart> => {
    const part = await readPart();
    const { implausible } = reader.answer;
    if (part.ending !== null && implausible !== null)
      telemetry.fault('usage that can not be true is counted anew', new Error(`${upstream}: ${implausible}`));
    return part;
  };
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
  try {
    while (text.length < maxErrorBytes) {
      const part = await Promise.race([answer.read(), late.promise]);
      if (part === null) break;
      if ('fault' in part && part.fault === 'interrupted') return part;
      if ('fault' in part) break;
      text += decoder.decode(part, { stream: true });
    }
    return text;
  } finally {
    cancel();
  }
}
