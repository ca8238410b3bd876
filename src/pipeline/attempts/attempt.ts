import { mostTokensOf } from '../../domain/money/hold-estimate.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Trace } from '../../domain/ports/telemetry.ts';
import type { UpstreamAnswer, UpstreamFault } from '../../domain/ports/upstreams.ts';
import type { Route } from '../../domain/routing.ts';
import type { UpstreamRequest } from '../../protocol/text.ts';
import { classifyStatus, statusesWithTellingBody } from '../../protocol/upstream/classify-error.ts';
import type { UpstreamReader } from '../../protocol/upstream/dialect.ts';
import { createReader } from '../../protocol/upstream/read-answer.ts';
import { createSanitiser } from '../../protocol/upstream/words/sanitise.ts';
import type { Sanitise } from '../../protocol/upstream/words/sanitise.ts';
import type { ClientConnection } from '../client-connection.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { endingOfFault } from '../results.ts';
import type { FailedEnding } from '../results.ts';
import { modelOf } from '../stage-views.ts';
import { AttemptStop, reasonOf } from './attempt-stop.ts';
import { CallCauses } from './call-causes.ts';
import { awaitFirstPart, fail } from './first-part.ts';
import type { FailedAttempt, OpenedAnswer } from './first-part.ts';
import type { ReceivedAnswer } from './received-answer.ts';
import { AttemptWatch } from './watch-attempt.ts';
import type { WatchedTerms } from './watch-attempt.ts';

/** The route of an attempt, its permit there, and its limits. */
export interface AttemptTerms extends WatchedTerms {
  /** Whether the attempt must use a new connection. */
  readonly fresh: boolean;
  readonly received: ReceivedAnswer;
}

/** What an attempt needs of the request that it is made for. */
export interface Caller extends Pick<Exchange, 'arrivedMs' | 'stage'> {
  readonly client: Pick<ClientConnection, 'authorization'>;
  readonly interruption: Pick<AbortController, 'signal'>;
  readonly trace: Pick<Trace, 'attempt'>;
}

/** The services that an attempt uses. */
export type AttemptPorts = Pick<Ports, 'clock' | 'fastPath' | 'health' | 'telemetry' | 'upstreams'>;

/** Sends the request to one upstream and waits for the first good part of its answer. */
export function attempt(
  request: UpstreamRequest,
  terms: AttemptTerms,
  caller: Caller,
  ports: AttemptPorts,
): Promise<OpenedAnswer | FailedAttempt> {
  const stop = stopOf(request, terms, caller, ports);
  const sent = send(request, terms, stop, caller, ports);
  return stop === null ? sent : endWith(stop, sent);
}

/** Ends what stops an attempt once it has failed: its deadline must not fire later. */
async function endWith(
  stop: AttemptStop,
  sent: Promise<OpenedAnswer | FailedAttempt>,
): Promise<OpenedAnswer | FailedAttempt> {
  let isOpen = false;
  try {
    const tried = await sent;
    isOpen = tried.kind === 'opened';
    return tried;
  } finally {
    if (!isOpen) stop.ended();
  }
}

/** What stops the attempt alone; `null` if only its request is ever stopped. A whole answer has no first text. */
function stopOf(
  { stream }: UpstreamRequest,
  { route: { firstTextMs }, race }: AttemptTerms,
  { interruption }: Caller,
  { clock }: AttemptPorts,
): AttemptStop | null {
  const limitMs = stream ? firstTextMs : undefined;
  if (limitMs === undefined && race === null) return null;
  const stop = new AttemptStop(interruption.signal, race);
  if (limitMs !== undefined) stop.expectText(limitMs, clock);
  return stop;
}

async function send(
  request: UpstreamRequest,
  terms: AttemptTerms,
  stop: AttemptStop | null,
  caller: Caller,
  ports: AttemptPorts,
): Promise<OpenedAnswer | FailedAttempt> {
  const { route, leftMs, fresh, received } = terms;
  const { signal } = stop ?? caller.interruption;
  const watch = new AttemptWatch(terms, caller, ports);
  stop?.onLost(() => watch.lost(null));
  const { upstream, dialect, quirks } = route;
  const { path, body } = dialect.writeRequest(request, route.model, quirks);
  const { stream } = request;
  const sanitise = sanitiserOf(request, route, caller);
  received.reset();
  const onSent = stream ? undefined : () => received.awaitWhole();
  const { trace } = watch;
  const call = { upstream, method: 'POST', path, body, stream, leftMs, fresh, trace, onSent } as const;
  const causes = new CallCauses(route, call, ports.telemetry);
  let answer: UpstreamAnswer | UpstreamFault;
  try {
    answer = await ports.upstreams.call(call, signal);
  } catch (error) {
    watch.dropped();
    throw error;
  }
  if (answer.kind === 'fault') {
    const fault = reasonOf(answer, signal);
    if (fault.fault !== 'interrupted') received.refused();
    return fail(watch, endingOfFault({ ...fault, cause: causes.explain(fault) }, signal, null));
  }
  watch.answered(answer);
  try {
    if (answer.status >= 200 && answer.status < 300)
      return await awaitFirstPart(
        answer,
        openReader(answer, { route, request, sanitise, watch, received, isFast: ports.fastPath }),
        watch,
        { signal, causes, stop, thinks: route.thinks === true, clock: ports.clock },
      );
    stop?.answered();
    received.refused();
    return fail(watch, await readErrorAnswer(answer, { causes, sanitise }, signal, ports));
  } catch (error) {
    // Unreleased, the answer would hold its connection until its total deadline: nothing else refers to it yet.
    answer.release();
    watch.dropped();
    throw error;
  }
}

/** Hides, in what an upstream says, its own secrets, the client's key and the request. */
function sanitiserOf(
  { turns, stop }: UpstreamRequest,
  { model, secrets }: Route,
  { client: { authorization = '' }, stage }: Caller,
): Sanitise {
  const names = [model, modelOf(stage) ?? model];
  const words =
    stop.length === 0 ? turns : [...turns, ...stop.map((text) => ({ role: 'user', text }) as const)];
  return createSanitiser({ turns: words, clientKey: authorization, upstream: secrets, names });
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
  const { dialect, finishReason, thoughtTag, emptyFails } = route;
  const { turns, stream: streamAsked } = request;
  const sentTokens = mostTokensOf(turns);
  const reader = createReader(dialect, {
    contentType,
    streamAsked,
    finishReason,
    thoughtTag,
    ...(emptyFails === true ? { emptyFails } : {}),
    sentTokens,
    sanitise,
    isFast: terms.isFast,
  });
  watch.reads(reader.answer.violations, { mostTokens: sentTokens, turns: turns.length });
  received.reads(reader.answer);
  return reader;
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
  { clock }: AttemptPorts,
): Promise<FailedEnding> {
  const { status, retryAfterMs } = answer;
  const text = await readErrorBody(answer, clock, statusesWithTellingBody.has(status));
  answer.release();
  if (typeof text !== 'string') return endingOfFault({ ...text, cause: causes.explain(text) }, signal, null);
  const classified = classifyStatus(status, text, retryAfterMs, sanitise);
  const failure = { ...classified, cause: causes.explain(answer, classified.kind) };
  return { kind: 'failed', failure, usage: null };
}

/** How much of an upstream's error body is read, in UTF-16 code units. */
const maxErrorChars = 65_536;

/**
 * How long reading an error body may take, in milliseconds: one that decides what follows, and one that is only shown to
 * the operator, for which another route must not wait.
 */
const tellingBodyMs = 2_000;
const shownBodyMs = 250;

/** Reads as much of an error body as arrives soon: the status alone would do. Returns a fault if interrupted. */
export async function readErrorBody(
  answer: UpstreamAnswer,
  clock: Clock,
  isTelling: boolean,
): Promise<string | UpstreamFault> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.schedule(isTelling ? tellingBodyMs : shownBodyMs, () => late.resolve(null));
  const decoder = new TextDecoder();
  let text = '';
  try {
    while (text.length < maxErrorChars) {
      const part = await Promise.race([answer.read(), late.promise]);
      if (part === null) break;
      if (!(part instanceof Uint8Array)) {
        if (part.fault === 'interrupted') return part;
        break;
      }
      text += decoder.decode(part, { stream: true });
    }
    return text.slice(0, maxErrorChars);
  } finally {
    cancel();
  }
}
