import { classifyStatus, statusesWithTellingBody } from '../protocol/upstream/classify-error.ts';
import type { UpstreamReader } from '../protocol/upstream/dialect.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import { createSanitiser } from '../protocol/upstream/words/sanitise.ts';
import type { Sanitise } from '../protocol/upstream/words/sanitise.ts';
import type { AnswerPart, Failure, FailureKind, UpstreamRequest } from '../protocol/text.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { diagnose, diagnoseAnswer, sentencesOf } from '../domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../domain/diagnosis/diagnose.ts';
import { mostTokensOf } from '../domain/pricing.ts';
import type { Route } from '../domain/routing.ts';
import type { AttemptLog, LoggedAttempt } from './attempt-log.ts';
import { readErrorBody } from './error-body.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { ReceivedAnswer } from './received-answer.ts';
import { endingOfFault } from './results.ts';
import type { AttemptEnding, FailedEnding } from './results.ts';
import { stageFacts } from './stage-views.ts';
import { watchAttempt } from './watch-attempt.ts';
import type { AttemptWatch } from './watch-attempt.ts';

/** The result of one read of an answer: some of its text, and how the attempt ended; `null` while it runs. */
interface ReadPart {
  readonly deltas: readonly string[];
  readonly ending: AttemptEnding | null;
}

/** An answer whose first good part has arrived. No other route is tried from here on. */
export interface OpenedAnswer {
  readonly kind: 'opened';
  readonly first: ReadPart;
  /** Reads the next part, which may be empty. Must not be called after an ending. */
  next(): Promise<ReadPart>;
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
  const watch = watchAttempt(route, leftMs, attempts, exchange, ports);
  const { upstream, dialect, quirks } = route;
  const { path, body } = dialect.writeRequest(request, route.model, quirks);
  const { stream } = request;
  const sanitise = sanitiserOf(request, route, exchange);
  const call = { method: 'POST', path, target: route.target } as const;
  const explain = (result: FailedCall, kind?: FailureKind): string =>
    sentencesOf(diagnose(call, result, kind));
  received.reset();
  const onSent = (): void => void (stream || received.awaitWhole());
  const answer = await ports.upstreams.call(
    { upstream, method: 'POST', path, body, stream, leftMs, fresh, trace: watch.trace, onSent },
    signal,
  );
  if (answer.kind === 'fault') {
    if (answer.fault !== 'interrupted') received.refused();
    return fail(watch, endingOfFault({ ...answer, cause: explain(answer) }, signal, null));
  }
  try {
    if (answer.status >= 200 && answer.status < 300)
      return await awaitFirstPart(
        answer,
        openReader(answer, { route, request, sanitise, watch, received }),
        watch,
        {
          signal,
          explain,
          withCause: (failure) => {
            const found = diagnoseAnswer(call, answer, failure);
            return found === null ? failure : { ...failure, cause: sentencesOf(found) };
          },
          onImplausible: (why) =>
            ports.telemetry.fault(
              'implausible usage from an upstream: counted instead',
              new Error(`${upstream}: ${why}`),
            ),
        },
      );
    received.refused();
    return fail(watch, await readErrorAnswer(answer, { explain, sanitise }, signal, ports));
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
  const names = [model, stageFacts(stage, 0).model ?? model];
  return createSanitiser({ turns, clientKey: authorization, upstream: secrets, names });
}

interface ReaderTerms {
  readonly route: Route;
  readonly request: UpstreamRequest;
  readonly sanitise: Sanitise;
  readonly watch: AttemptWatch;
  readonly received: ReceivedAnswer;
}

function openReader({ contentType }: UpstreamAnswer, terms: ReaderTerms): UpstreamReader {
  const { route, request, sanitise, watch, received } = terms;
  const { dialect, finishReason } = route;
  const { turns, stream: streamAsked } = request;
  const sentTokens = mostTokensOf(turns);
  const reader = createReader(dialect, { contentType, streamAsked, finishReason, sentTokens, sanitise });
  watch.reads(reader.answer.violations);
  received.reads(reader.answer.thoughts);
  return reader;
}

async function awaitFirstPart(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  watch: AttemptWatch,
  options: ReadOptions,
): Promise<OpenedAnswer | FailedAttempt> {
  const read = (): Promise<ReadPart> => readPart(answer, reader, options);
  let first = await read();
  while (first.deltas.length === 0 && first.ending === null) first = await read();
  // A whole body is one part: with a bad end, none of it may be used.
  const isEmpty = first.deltas.length === 0 || reader.isWhole;
  if (isEmpty && first.ending !== null && first.ending.kind !== 'finished') {
    answer.release();
    return fail(watch, first.ending);
  }
  watch.opened();
  const note = (part: ReadPart): ReadPart => {
    if (part.ending !== null) watch.ended(part.ending);
    return part;
  };
  return {
    kind: 'opened',
    first: note(first),
    next: async () => note(await read()),
    release: () => answer.release(),
  };
}

interface ReadOptions {
  readonly signal: AbortSignal;
  /** Names the cause of a fault for the operator. */
  readonly explain: (fault: UpstreamFault) => string;
  /** The same for a failure that the answer itself shows. */
  readonly withCause: (failure: Failure) => Failure;
  /** Called at the end of an answer whose reported usage is implausible. */
  readonly onImplausible: (why: string) => void;
}

async function readPart(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  { onImplausible, ...options }: ReadOptions,
): Promise<ReadPart> {
  const bytes = await answer.read();
  const part = takePart(bytes, reader, options);
  if (bytes === null && part.ending === null)
    throw new Error('the body ended, but its reader returned no ending');
  if (part.ending !== null && reader.answer.implausible !== null) onImplausible(reader.answer.implausible);
  return part;
}

function takePart(
  bytes: Uint8Array | null | UpstreamFault,
  reader: UpstreamReader,
  { signal, explain, withCause }: Omit<ReadOptions, 'onImplausible'>,
): ReadPart {
  if (bytes === null) return explained(reader.end(), withCause);
  if (bytes instanceof Uint8Array) return explained(reader.push(bytes), withCause);
  return {
    deltas: [],
    ending: endingOfFault({ ...bytes, cause: explain(bytes) }, signal, reader.answer.knownUsage()),
  };
}

function explained({ deltas, ending }: AnswerPart, withCause: ReadOptions['withCause']): ReadPart {
  if (ending?.kind !== 'failed') return { deltas, ending };
  return { deltas, ending: { ...ending, failure: withCause(ending.failure) } };
}

function fail(watch: AttemptWatch, ending: FailedEnding): FailedAttempt {
  watch.ended(ending);
  return { kind: 'failed_attempt', ending, logged: watch.logged };
}

/** What is said of a failed call: the cause with its address, for the operator, and the upstream's own words. */
interface Words {
  readonly explain: (result: FailedCall, kind?: FailureKind) => string;
  readonly sanitise: Sanitise;
}

async function readErrorAnswer(
  answer: UpstreamAnswer,
  { explain, sanitise }: Words,
  signal: AbortSignal,
  { clock }: Ports,
): Promise<FailedEnding> {
  const { status, retryAfterMs } = answer;
  const text = await readErrorBody(answer, clock, statusesWithTellingBody.has(status));
  answer.release();
  if (typeof text !== 'string') return endingOfFault({ ...text, cause: explain(text) }, signal, null);
  const classified = classifyStatus(status, text, retryAfterMs, sanitise);
  const failure = { ...classified, cause: explain(answer, classified.kind) };
  return { kind: 'failed', failure, usage: null };
}
