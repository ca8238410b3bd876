import { classifyStatus, statusesWithTellingBody } from '../protocol/upstream/classify-error.ts';
import type { UpstreamReader } from '../protocol/upstream/dialect.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import { createSanitiser } from '../protocol/upstream/words/sanitise.ts';
import type { Sanitise } from '../protocol/upstream/words/sanitise.ts';
import type { UpstreamRequest } from '../protocol/text.ts';
import type { UpstreamAnswer } from '../domain/ports/upstreams.ts';
import { mostTokensOf } from '../domain/hold-estimate.ts';
import type { Route } from '../domain/routing.ts';
import type { AttemptLog, LoggedAttempt } from './attempt-log.ts';
import { CallCauses } from './call-causes.ts';
import { readErrorBody } from './error-body.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import { readParts } from './read-parts.ts';
import type { PartTerms, ReadPart } from './read-parts.ts';
import type { ReceivedAnswer } from './received-answer.ts';
import { endingOfFault } from './results.ts';
import type { AttemptEnding, FailedEnding } from './results.ts';
import { modelOf } from './stage-views.ts';
import { AttemptWatch } from './watch-attempt.ts';

/** An answer whose first good part has arrived. No other route is tried from here on. */
export interface OpenedAnswer {
  readonly kind: 'opened';
  readonly first: ReadPart;
  /**
   * Reads on, and hands each part's text to `send` as it arrives. Resolves with the ending; or with `null`
   * when `send` has returned false, because a client has to read before it gets more. Must not be called after an ending.
   */
  readOn(send: (deltas: readonly string[]) => boolean): Promise<AttemptEnding | null>;
  /** Drops the rest of the answer. */
  release(): void;
}

/** An attempt that failed before its first good part. */
export interface FailedAttempt {
  readonly kind: 'failed_attempt';
  readonly ending: FailedEnding;
  readonly logged: LoggedAttempt;
}

/** The route of an attempt, and its limits. */
interface AttemptTerms {
  readonly route: Route;
  /** The rest of the request's total time, in milliseconds. */
  readonly leftMs: number;
  /** Whether the attempt must use a new connection. */
  readonly fresh: boolean;
  readonly attempts: AttemptLog;
  readonly received: ReceivedAnswer;
}

/** Sends the request to one upstream and waits for the first good part of its answer. */
export async function attempt(
  request: UpstreamRequest,
  { route, leftMs, fresh, attempts, received }: AttemptTerms,
  exchange: Exchange,
  ports: Ports,
): Promise<OpenedAnswer | FailedAttempt> {
  const { signal } = exchange.interruption;
  const watch = new AttemptWatch(route, leftMs, attempts, exchange, ports);
  const { upstream, dialect, quirks } = route;
  const { path, body } = dialect.writeRequest(request, route.model, quirks);
  const { stream } = request;
  const sanitise = sanitiserOf(request, route, exchange);
  received.reset();
  const onSent = stream ? undefined : () => received.awaitWhole();
  const { trace } = watch;
  const call = { upstream, method: 'POST', path, body, stream, leftMs, fresh, trace, onSent } as const;
  const causes = new CallCauses(route, call, ports.telemetry);
  const answer = await ports.upstreams.call(call, signal);
  if (answer.kind === 'fault') {
    if (answer.fault !== 'interrupted') received.refused();
    return fail(watch, endingOfFault({ ...answer, cause: causes.explain(answer) }, signal, null));
  }
  try {
    if (answer.status >= 200 && answer.status < 300)
      return await awaitFirstPart(
        answer,
        openReader(answer, { route, request, sanitise, watch, received, isFast: ports.fastRoad }),
        watch,
        { signal, causes },
      );
    received.refused();
    return fail(watch, await readErrorAnswer(answer, { causes, sanitise }, signal, ports));
  } catch (error) {
    // Unreleased, the answer would hold its connection until its total deadline: nothing else refers to it yet.
    answer.release();
    throw error;
  }
}

/** Hides, in what an upstream says, its own secrets, the client's key and the request. */
function sanitiserOf(
  { turns }: UpstreamRequest,
  { model, secrets }: Route,
  { client: { authorization = '' }, stage }: Exchange,
): Sanitise {
  const names = [model, modelOf(stage) ?? model];
  return createSanitiser({ turns, clientKey: authorization, upstream: secrets, names });
}

interface ReaderTerms {
  readonly route: Route;
  readonly request: UpstreamRequest;
  readonly sanitise: Sanitise;
  readonly watch: AttemptWatch;
  readonly received: ReceivedAnswer;
  readonly isFast: boolean;
}

function openReader({ contentType }: UpstreamAnswer, terms: ReaderTerms): UpstreamReader {
  const { route, request, sanitise, watch, received } = terms;
  const { dialect, finishReason } = route;
  const { turns, stream: streamAsked } = request;
  const sentTokens = mostTokensOf(turns);
  const reader = createReader(dialect, {
    contentType,
    streamAsked,
    finishReason,
    sentTokens,
    sanitise,
    isFast: terms.isFast,
  });
  watch.reads(reader.answer.violations);
  received.reads(reader.answer.thoughts);
  return reader;
}

async function awaitFirstPart(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  watch: AttemptWatch,
  terms: PartTerms,
): Promise<OpenedAnswer | FailedAttempt> {
  const first = await readParts(answer, reader, terms, isNothing);
  // A whole body is one part: with a bad end, none of it may be used.
  const isEmpty = first.deltas.length === 0 || reader.isWhole;
  if (isEmpty && first.ending !== null && first.ending.kind !== 'finished') {
    answer.release();
    return fail(watch, first.ending);
  }
  watch.opened();
  if (first.ending !== null) watch.ended(first.ending);
  return {
    kind: 'opened',
    first,
    async readOn(send) {
      const isSent = ({ deltas, ending }: ReadPart): boolean =>
        (deltas.length === 0 || send(deltas)) && ending === null;
      const { ending } = await readParts(answer, reader, terms, isSent);
      if (ending !== null) watch.ended(ending);
      return ending;
    },
    release: () => answer.release(),
  };
}

function fail(watch: AttemptWatch, ending: FailedEnding): FailedAttempt {
  watch.ended(ending);
  return { kind: 'failed_attempt', ending, logged: watch.logged };
}

/** What is said of a failed call: the cause with its address, for the operator, and the upstream's own words. */
interface Words {
  readonly causes: CallCauses;
  readonly sanitise: Sanitise;
}

async function readErrorAnswer(
  answer: UpstreamAnswer,
  { causes, sanitise }: Words,
  signal: AbortSignal,
  { clock }: Ports,
): Promise<FailedEnding> {
  const { status, retryAfterMs } = answer;
  const text = await readErrorBody(answer, clock, statusesWithTellingBody.has(status));
  answer.release();
  if (typeof text !== 'string') return endingOfFault({ ...text, cause: causes.explain(text) }, signal, null);
  const classified = classifyStatus(status, text, retryAfterMs, sanitise);
  const failure = { ...classified, cause: causes.explain(answer, classified.kind) };
  return { kind: 'failed', failure, usage: null };
}

function isNothing({ deltas, ending }: ReadPart): boolean {
  return deltas.length === 0 && ending === null;
}
