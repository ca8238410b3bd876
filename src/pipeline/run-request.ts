import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Protocol } from '../protocol/text.ts';
import type { RequestKind } from '../domain/money/consumption.ts';
import { isSpendingLimited } from '../domain/limits/groups.ts';
import { mostTokensOf } from '../domain/money/hold-estimate.ts';
import type { Interruption, ExchangeResult } from './results.ts';
import { admit } from './admission/admit.ts';
import { freeSlots } from './admission/take-slots.ts';
import { createAnswerWriter, conclude, rewrite } from './delivery/send-answer.ts';
import { watchDisconnect } from './delivery/watch-disconnect.ts';
import { AttemptLog } from './attempts/attempt-log.ts';
import { authenticate, refuseAddress } from './admission/authenticate.ts';
import { joinOrClaim, takeClaim } from './claims/claim-request.ts';
import { dropBody } from './claims/early-body.ts';
import { eventIdsOf } from './claims/event-place.ts';
import { joinRetryOrKeep } from './claims/join-retry.ts';
import type { ClientConnection } from './client-connection.ts';
import { limitCost } from './money/limit-cost.ts';
import { beginExchange, reach } from './exchange.ts';
import type { Exchange } from './exchange.ts';
import { normalize } from './normalize.ts';
import type { Ports } from './ports.ts';
import { reserve } from './money/reserve.ts';
import { interruptedBy, refused, usageOf } from './results.ts';
import type { PermitTerms } from './permits/request-permits.ts';
import { acquirePermit, openPermits } from './permits/acquire-permit.ts';
import type { Permitted } from './permits/acquire-permit.ts';
import { refuseModel, route } from './route.ts';
import { settle } from './money/settle.ts';
import { runningView } from './stage-views.ts';
import type { Admitted, Dispatched, Identified, Routed, TextWork } from './stages.ts';
import { toUpstreamRequest, tryRoutes } from './attempts/try-routes.ts';

/** Answers one request for text in the client's protocol. Never rejects. */
export function runTextRequest(protocol: Protocol, client: ClientConnection, ports: Ports): Promise<void> {
  return runRequest(protocol, client, ports, (exchange) =>
    admitAndWork(exchange, ports, (admitted) => answerText(protocol, admitted, exchange, ports)),
  );
}

/**
 * The frame of every request: `work` makes the answer, the request is settled exactly once, and only then does the client get the
 * end. Never rejects.
 */
export async function runRequest(
  kind: RequestKind,
  client: ClientConnection,
  ports: Ports,
  work: (exchange: Exchange) => Promise<ExchangeResult>,
): Promise<void> {
  const { inFlight, telemetry } = ports;
  const exchange = beginExchange(kind, client, ports);
  const running = {
    requestId: exchange.requestId,
    view: () => runningView(exchange.stage, exchange, ports.upstreamLimiters),
    interrupt: (reason: Interruption) => exchange.interruption.abort(reason),
  };
  const leave = inFlight.add(running);
  const unwatch = watchDisconnect(exchange, ports.clock);
  telemetry.exchangeBegan(kind);
  try {
    const worked = await work(exchange).catch((error: unknown): ExchangeResult => {
      telemetry.fault('request failed unexpectedly', error);
      return { kind: 'unexpected' };
    });
    exchange.permits?.end();
    exchange.delivery.seal();
    const result = unlessInterrupted(worked, exchange);
    await conclude(await settle(result, exchange, ports), exchange);
  } catch (error) {
    telemetry.fault('end of an answer not sent', error);
    exchange.shadow?.requestEnded('crashed');
    exchange.claim?.answer.tearDown();
    await exchange.delivery.tearDown();
  } finally {
    unwatch();
    leave();
    exchange.claim?.leave();
    dropBody(exchange);
  }
}

/** Finds the key of a request, or says why there is none that may be used. */
export async function identify(
  exchange: Exchange,
  { keys }: Pick<Ports, 'keys'>,
): Promise<Identified | Refusal> {
  const { client } = exchange;
  if (client.headFault !== null) return client.headFault;
  const key = await authenticate(client, keys);
  if (isRefusal(key)) return key;
  const identified = { stage: 'identified', key } as const;
  exchange.stage = identified;
  const misplaced = refuseAddress(key, client);
  if (misplaced !== null) return misplaced;
  client.recognize();
  return identified;
}

/**
 * The stages that nearly all requests share: no work without a valid key, and no body is read without a slot, but for those that
 * may be joined, which are few at a time.
 */
export async function admitAndWork(
  exchange: Exchange,
  ports: Ports,
  work: (admitted: Admitted) => Promise<ExchangeResult>,
): Promise<ExchangeResult> {
  const identified = await identify(exchange, ports);
  if (isRefusal(identified)) return refused(identified);
  const joining = joinEarlier(identified, exchange, ports);
  const joined = joining === null ? null : await joining;
  if (joined !== null) return joined;
  const admitted = reach(exchange, await admit(identified, exchange, ports));
  if (isRefusal(admitted)) return refused(admitted);
  if (admitted.stage === 'limited') return refused(admitted.refusal);
  return work(admitted);
}

/** Looks for an earlier request that this one is the same as; `null` for nearly all, which say nothing of one. */
function joinEarlier(
  identified: Identified,
  exchange: Exchange,
  ports: Ports,
): Promise<ExchangeResult | null> | null {
  const { client, protocol } = exchange;
  if (protocol === 'passthrough') return null;
  if ((client.claim ?? client.lastEventId) !== undefined) return joinOrClaim(identified, exchange, ports);
  const { joinRetriesMs } = identified.key;
  if (joinRetriesMs === null || client.triedKeyId !== null) return null;
  return joinRetryOrKeep(identified, joinRetriesMs, exchange, ports);
}

/**
 * The stages of a request for text. Their order ensures that nothing is sent upstream unchecked or unpaid, nothing is
 * begun for a client that has disconnected, and nothing reaches the client unrecorded.
 */
async function answerText(
  protocol: Protocol,
  admitted: Admitted,
  exchange: Exchange,
  ports: Ports,
): Promise<ExchangeResult> {
  const { begun } = admitted.admission;
  const ready = await makeReady(protocol, admitted, exchange, ports);
  if (ready.kind !== 'permitted') return ready;
  const { key, admission, work } = ready.now;
  const { claim } = exchange;
  const isNamed = claim !== null && claim.claim !== null;
  const numbers = isNamed ? { idPrefix: eventIdsOf(claim.requestId), after: -1 } : null;
  exchange.delivery.begin(createAnswerWriter(work.request, exchange, numbers));
  const unclaimed = claim === null ? null : await takeClaim(claim, work.request, exchange, ports);
  if (unclaimed !== null) return refused(unclaimed);
  const dispatched = dispatch({ key, admission }, work, exchange, ports);
  const recording = record(dispatched, exchange, ports);
  if (begun !== null || isSpendingLimited(key, admission.group) || !ports.records.takesWrites) {
    const unpaid = await recording;
    if (unpaid !== null) return refused(unpaid);
    const { signal } = exchange.interruption;
    if (signal.aborted) return interruptedBy(signal, null);
  }
  const toSend = toUpstreamRequest(work, isHoldBound(exchange, ports));
  const calling = tryRoutes(toSend, work, dispatched, exchange, ports);
  ports.shadows?.begin(work.model.id, toSend, recording, exchange);
  // Waits even if the call throws: a record begun after its settlement would stay open and keep its hold.
  await Promise.allSettled([calling, recording]);
  const answer = await calling;
  try {
    const unrecorded = await recording;
    if (unrecorded !== null) return refused(unrecorded);
    if (answer.kind !== 'opened') return answer;
    // The call may be over long before its client has read the answer, and needs no slot then.
    const freeWhenOver = (): void => answer.whenOver(() => void freeSlots(exchange, ports));
    return await rewrite(answer, work.received, exchange, ports, freeWhenOver);
  } finally {
    if (answer.kind === 'opened') answer.release();
  }
}

/** Reads a request for text, unless it was read before it was admitted. The stage of the exchange says how far it came. */
async function readWork(
  protocol: Protocol,
  { key, admission }: Admitted,
  exchange: Exchange,
  ports: Ports,
): Promise<TextWork | Refusal> {
  if (admission.work !== null) return admission.work;
  const request = await normalize(protocol, key, exchange, ports);
  if (isRefusal(request)) return request;
  exchange.stage = { stage: 'asked', key, admission, request };
  const found = await route(key, request, ports);
  if (isRefusal(found)) return found;
  exchange.stage = { stage: 'routed', key, admission, work: found };
  return limitCost(found, exchange.client);
}

/** Reads a request for text, and acquires what it needs at its upstreams; or returns how it ends. */
async function makeReady(
  protocol: Protocol,
  admitted: Admitted,
  exchange: Exchange,
  ports: Ports,
): Promise<Permitted<Routed> | ExchangeResult> {
  const work = await readWork(protocol, admitted, exchange, ports);
  // The prompt is in the request now, as text.
  dropBody(exchange);
  if (isRefusal(work)) return refused(work);
  const { key, admission } = admitted;
  const ready: Permitted<Routed> = { kind: 'permitted', now: { stage: 'routed', key, admission, work } };
  exchange.stage = ready.now;
  // A record that was begun has to be settled, whatever became of the client, and waits for no permit.
  if (admission.begun !== null) return ready;
  const { signal } = exchange.interruption;
  if (signal.aborted) return interruptedBy(signal, null);
  const permits = openPermits(work.routes, () => permitTermsOf(ready.now), exchange, ports);
  if (permits === null) return ready;
  const refuseKey = (now: Routed): Refusal | null => refuseModel(now.key, work.model);
  return acquirePermit(permits, work.routes, ready.now, refuseKey, exchange, ports);
}

/** Whose request for text it is, and the most tokens that are expected of it. */
function permitTermsOf({ key, work: { request, model } }: Routed): PermitTerms {
  const tokens = { input: mostTokensOf(request.turns), output: request.maxOutputTokens ?? model.holdTokens };
  return { keyId: key.id, weight: key.weight, tokens };
}

/** Enters the `dispatched` stage: the request is about to be sent upstream. */
export function dispatch(
  { key, admission }: Pick<Admitted, 'key' | 'admission'>,
  work: Dispatched['work'],
  exchange: Exchange,
  { clock }: Ports,
): Dispatched {
  const dispatchedMs = clock.monotonicMs();
  const attempts = new AttemptLog();
  const dispatched: Dispatched = { stage: 'dispatched', key, admission, work, dispatchedMs, attempts };
  exchange.stage = dispatched;
  return dispatched;
}

/** Begins the record, after which bytes may be sent; resolves with the refusal if it could not be begun. */
export async function record(
  dispatched: Dispatched,
  exchange: Exchange,
  ports: Ports,
): Promise<Refusal | null> {
  const recorded = reach(exchange, await reserve(dispatched, exchange, ports));
  if (isRefusal(recorded)) return recorded;
  exchange.delivery.permit();
  return null;
}

/** Whether the request must not cost more than its hold. */
function isHoldBound({ stage }: Exchange, { balanceMode }: Ports): boolean {
  return balanceMode === 'strict' && stage.stage === 'recorded' && stage.reservation.holdNanos !== null;
}

/** Replaces a failure by its reason when the client disconnected or the request was stopped. */
function unlessInterrupted(
  result: ExchangeResult,
  { interruption: { signal }, delivery, claim }: Exchange,
): ExchangeResult {
  const usage = usageOf(result);
  if (signal.aborted && result.kind !== 'finished' && result.kind !== 'joined')
    return interruptedBy(signal, usage);
  // An answer under a claim is for those who come back, too.
  return delivery.hasLeft && claim === null && !signal.aborted
    ? { kind: 'interrupted', interruption: 'client_closed', usage }
    : result;
}
