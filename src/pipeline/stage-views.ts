import { escapeControlCharacters } from '../shared/control-characters.ts';
import { holdsSecret } from '../protocol/upstream/words/sanitise.ts';
import { isShownName } from '../protocol/upstream/words/secret-shapes.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { RequestKind } from '../domain/money/consumption.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { UpstreamLimiters } from '../domain/ports/upstream-limiters.ts';
import type { RunningRequest } from '../domain/ports/running-requests.ts';
import { readBearer } from './admission/authenticate.ts';
import type { AttemptLog } from './attempts/attempt-log.ts';
import type { ClaimedRun } from './claims/claimed-run.ts';
import type { HeadFacts } from './client-connection.ts';
import type { Dispatched, Recorded, Routed, Stage } from './stages.ts';
import type { GroupSlot } from '../domain/limits/groups.ts';

/** The fields of a request's summary that its stage provides; `null` for those of stages not reached. */
type StageFacts = Pick<
  ExchangeSummary,
  | 'keyId'
  | 'keyName'
  | 'tag'
  | 'mode'
  | 'model'
  | 'stripped'
  | 'admittedMs'
  | 'limiterMs'
  | 'slotWaitMs'
  | 'queuedMs'
>;

const noFacts: StageFacts = {
  keyId: null,
  keyName: null,
  tag: null,
  mode: 'sync',
  model: null,
  stripped: [],
  admittedMs: null,
  limiterMs: 0,
  slotWaitMs: 0,
  queuedMs: null,
};

/** Reads the summary's fields from a stage. `arrivedMs` is on the monotonic clock. */
export function stageFacts(stage: Stage, arrivedMs: number): StageFacts {
  if (stage.stage === 'arrived') return noFacts;
  const { id: keyId, name: keyName } = stage.key;
  if (stage.stage === 'identified') return { ...noFacts, keyId, keyName };
  if (stage.stage === 'joined') {
    const { stream, stripped } = stage.asked.request;
    return { ...noFacts, keyId, keyName, mode: stream ? 'stream' : 'sync', stripped };
  }
  const { admittedMs, limiterMs, slotWaitMs, tag } = stage.admission;
  const request = requestOf(stage);
  return {
    keyId,
    keyName,
    tag,
    mode: request?.stream === true ? 'stream' : 'sync',
    model: modelOf(stage),
    stripped: request?.stripped ?? noFacts.stripped,
    admittedMs: admittedMs - arrivedMs,
    limiterMs,
    slotWaitMs,
    queuedMs: isSent(stage) ? stage.dispatchedMs - arrivedMs : null,
  };
}

/** The request for text; `null` before it is read, and for one that is passed on. */
function requestOf(stage: Stage): Pick<TextRequest, 'stream' | 'stripped'> | null {
  if (stage.stage === 'asked') return stage.request;
  if (stage.stage === 'joined') return stage.asked.request;
  const work = workOf(stage);
  return work?.kind === 'text' ? work.request : null;
}

/**
 * The name of the offered model; `null` before it is found. The path of a passthrough request is in its record alone:
 * metrics are labelled by the models of the config.
 */
export function modelOf(stage: Stage): string | null {
  const work = workOf(stage);
  return work?.kind === 'text' ? work.model.id : null;
}

function workOf(stage: Stage): Routed['work'] | Dispatched['work'] | null {
  return stage.stage === 'routed' || isSent(stage) ? stage.work : null;
}

function isSent(stage: Stage): stage is Dispatched | Recorded {
  return stage.stage === 'dispatched' || stage.stage === 'recorded';
}

/** The longest name of a model that is shown, and how much of a longer one is searched for keys, in characters. */
const maxShownModelChars = 128;
const maxSearchedModelChars = 4_096;

/**
 * The model's name as the client wrote it, so that a misspelt one can be found; `null` if it was not read. A name that is
 * on offer is not searched for keys: it is in the config or in an upstream's list, and the search is dear.
 */
export function requestedModelOf(stage: Stage, authorization: string | undefined): string | null {
  switch (stage.stage) {
    case 'asked':
      return shownUnlessKey(stage.request.model, authorization);
    case 'joined':
      return shownUnlessKey(stage.asked.request.model, authorization);
    case 'routed':
    case 'dispatched':
    case 'recorded':
      return stage.work.kind === 'text' ? shownPart(stage.work.model.id) : null;
    case 'arrived':
    case 'identified':
    case 'limited':
    case 'admitted':
      return null;
  }
}

/**
 * A name that may be anything, even a key or a part of one: `authorization` is the client's own header, and no other key
 * can be compared.
 */
function shownUnlessKey(model: string, authorization: string | undefined): string {
  const name = model.slice(0, maxSearchedModelChars).toWellFormed();
  const credential = readBearer(authorization) ?? '';
  const holdsCredential = credential !== '' && (name.includes(credential) || holdsSecret(name, credential));
  return holdsCredential || !isShownName(name) ? '[key]' : shownPart(name);
}

function shownPart(name: string): string {
  return escapeControlCharacters(name.slice(0, maxShownModelChars).toWellFormed());
}

const noHeadFacts: HeadFacts = {
  decision: null,
  limits: null,
  tokens: null,
  balanceNanos: null,
  queueMs: 0,
  stripped: [],
  replayOf: null,
  isUnkept: false,
};

/**
 * What the head of an answer says at this stage; `permitWaitMs` is how long the request waited for upstreams, in milliseconds,
 * and `run` what its answer is kept in.
 */
export function headFactsOf(stage: Stage, permitWaitMs: number, run: ClaimedRun | null): HeadFacts {
  const stripped = requestOf(stage)?.stripped ?? noFacts.stripped;
  if (stage.stage === 'joined') return { ...noHeadFacts, stripped, replayOf: stage.requestId };
  if (stage.stage === 'arrived' || stage.stage === 'identified') return noHeadFacts;
  const { decision, limits, tokens, slotWaitMs } = stage.admission;
  const balanceNanos = stage.stage === 'recorded' ? stage.reservation.balanceNanos : null;
  const queueMs = slotWaitMs + permitWaitMs;
  const isUnkept = run?.phase === 'freed' && run.claim !== null;
  return { decision, limits, tokens, balanceNanos, queueMs, stripped, replayOf: null, isUnkept };
}

/** What is known of a request from its arrival on; `arrivedAtMs` is since 1970, `arrivedMs` on the monotonic clock. */
interface Arrival {
  readonly requestId: string;
  readonly protocol: RequestKind;
  readonly arrivedAtMs: number;
  readonly arrivedMs: number;
  /** Its slot of a group; `null` without one. */
  readonly groupSlot: GroupSlot | null;
  /** Its permits; `null` where none of its upstreams has limits. */
  readonly permits: object | null;
  /** Its run under a claim; `null` without one. */
  readonly claim: Pick<ClaimedRun, 'phase' | 'answer'> | null;
}

/** The attempts of a request; `null` before it was sent upstream. */
export function attemptsOf(stage: Stage): AttemptLog | null {
  return isSent(stage) ? stage.attempts : null;
}

/** When the first text arrived, on the monotonic clock; `null` before that. */
export function firstTextOf(stage: Stage): number | null {
  return isSent(stage) && stage.work.kind === 'text' ? stage.work.received.firstTextMs : null;
}

/** A running request, as the operator sees it. */
export function runningView(
  stage: Stage,
  { requestId, protocol, arrivedAtMs, arrivedMs, groupSlot, permits, claim }: Arrival,
  upstreamLimiters: Pick<UpstreamLimiters, 'waiting'>,
): RunningRequest {
  const { keyId, keyName, mode, model } = stageFacts(stage, 0);
  const firstTextMs = firstTextOf(stage);
  // The body of a request that waits for a slot has not been read.
  const isJoined = stage.stage === 'joined';
  const isRead = stage.stage === 'asked' || stage.stage === 'routed' || isSent(stage);
  const isDecided = stage.stage === 'limited' || stage.stage === 'admitted';
  const hasSlot = isRead || (isDecided && stage.admission.decision.verdict === 'granted');
  return {
    requestId,
    protocol,
    createdAtMs: arrivedAtMs,
    keyId,
    keyName,
    groupId: groupSlot?.groupId ?? null,
    hasSlot,
    permitWait: permits === null ? null : upstreamLimiters.waiting(requestId),
    mode: isJoined || (isRead && protocol !== 'passthrough') ? mode : null,
    model: isJoined ? stage.asked.request.model : model,
    upstream: attemptsOf(stage)?.upstream ?? null,
    firstTextMs: firstTextMs === null ? null : firstTextMs - arrivedMs,
    // Before it runs it has no clients yet, and after its end none is left: neither is one that goes on without any.
    listening: claim?.phase === 'running' ? claim.answer.listeners : null,
    joined: isJoined ? stage.requestId : null,
    node: null,
  };
}
