import { statusOf } from '../../shared/errors.ts';
import { codeOf } from '../../domain/exchange-summary.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import type { RecordedFailure } from '../../domain/money/consumption.ts';
import { hasTokenLimit } from '../../domain/limits/token-limits.ts';
import { chargeFor } from './charge.ts';
import type { Charge } from './charge.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { endOf, outcomeOf, refusalOfResult, usageOf, wordsOf } from '../results.ts';
import type { ExchangeResult, OwnResult, Settled } from '../results.ts';
import { attemptsOf, firstTextOf, requestedModelOf, stageFacts } from '../stage-views.ts';
import type { Recorded } from '../stages.ts';
import { comesToNothing, endClaim } from '../claims/end-claim.ts';
import type { Closed } from '../claims/end-claim.ts';
import { freeSlots } from '../admission/take-slots.ts';

/** The recorded status when the client disconnected before it got one. */
const clientClosedStatus = 499;

/** How long the slots of a request whose upstream call is over wait for its record, in milliseconds. */
const maxHeldMs = 5;

/** The same where the record's settlement frees its slot: to give it back before is a call more of a database that is busy. */
const maxHeldForCallMs = 50;

/**
 * Settles an exchange, whatever its result: closes and charges the record and releases the slot before the client gets
 * the end, so that its next request finds both done. Returns the charge, and the result as the client gets it: the usage of
 * a finished answer is the one that was charged, which is our own count if the upstream reported none.
 */
export async function settle(result: ExchangeResult, exchange: Exchange, ports: Ports): Promise<Settled> {
  const { stage } = exchange;
  const summary = summarize(result, exchange, ports.clock.monotonicMs());
  const wasBegun = stage.stage === 'recorded' && result.kind !== 'joined';
  const closed = wasBegun ? await closeOrFree(stage, result, summary, exchange, ports) : null;
  await freeSlots(exchange, ports);
  const { claim } = exchange;
  if (claim === null || (await endClaim(claim, result, { wasBegun, closed }, ports)))
    return tell(result, closed, summary, exchange, ports);
  // Another process may run its claim by now, or settle it at the next start: its answer must not pass for complete.
  const interruption = ports.inFlight.accepting ? 'lost' : 'drained';
  const lost: ExchangeResult = { kind: 'interrupted', interruption, usage: null };
  return tell(lost, null, summarize(lost, exchange, ports.clock.monotonicMs()), exchange, ports);
}

/** Tells all who follow requests how this one has ended, and returns what its client is told. */
function tell(
  result: ExchangeResult,
  closed: Closed | null,
  summary: Uncharged,
  exchange: Exchange,
  ports: Ports,
): Settled {
  const charge = closed?.charge ?? null;
  if (charge !== null) summary.chargeNanos = charge.chargeNanos;
  ports.telemetry.exchangeEnded(summary);
  exchange.trace.ended(summary);
  for (const observe of ports.settled)
    try {
      observe(result, summary, exchange);
    } catch (error) {
      ports.telemetry.fault('a feature failed at a settled request', error);
    }
  const shown = result.kind === 'finished' && charge !== null ? { ...result, usage: charge.usage } : result;
  return {
    result: shown,
    chargeNanos: closed?.isBooked === true ? closed.charge.chargeNanos : null,
    endedAtSeconds: Math.floor(ports.clock.now() / 1_000),
  };
}

/**
 * Closes the record. If that takes long, because the text is counted or the database is slow, the slots are free before: the
 * upstream's call is over. They usually wait for the record, so that a queued request finds this one's hold given back.
 */
async function closeOrFree(
  recorded: Recorded,
  result: OwnResult,
  summary: Uncharged,
  exchange: Exchange,
  ports: Ports,
): ReturnType<typeof closeRecord> {
  const heldMs = ports.limiter.beginsRecords === true ? maxHeldForCallMs : maxHeldMs;
  const cancel = ports.clock.schedule(heldMs, () => void freeSlots(exchange, ports));
  try {
    return await closeRecord(recorded, result, summary, exchange, ports);
  } finally {
    cancel();
  }
}

/** Closes the record; returns its charge, if it is known. A complete answer reaches its client even if this fails. */
async function closeRecord(
  recorded: Recorded,
  result: OwnResult,
  summary: Uncharged,
  { requestId, delivery: { sentStatus: passedStatus }, claim }: Exchange,
  ports: Ports,
): Promise<Closed | null> {
  const outcome = outcomeOf(result);
  const { usage: reported, upstream, status, firstTextMs, totalMs } = summary;
  let charge: Charge | null = null;
  try {
    charge = await chargeFor({ outcome, usage: reported, passedStatus }, recorded, ports);
    const { usage, usageSource, price, chargeNanos } = charge;
    const attempts = recorded.attempts.recorded();
    // Handed in first, and so counted once the record is settled.
    if (usage !== null && price !== null && hasTokenLimit(recorded.admission.limits))
      void ports.tokenUse.add(recorded.key.id, usage.inputTokens + usage.outputTokens);
    const unbookedNanos = await ports.records.settle({
      requestId,
      begun: recorded.begun,
      outcome,
      upstream,
      attempts,
      status,
      firstTextMs,
      totalMs,
      usage,
      usageSource,
      price,
      chargeNanos,
      failure: failureOf(summary),
      ...(claim?.isStored === true && claim.claim !== null
        ? { claim: { name: claim.claim.name, isFreed: comesToNothing(result, chargeNanos) } }
        : {}),
    });
    // What is logged, and shown to the client once it is booked, is what its receipt has.
    const booked = { ...charge, chargeNanos: chargeNanos - (unbookedNanos ?? 0) };
    return { charge: booked, isBooked: unbookedNanos !== null };
  } catch (error) {
    ports.telemetry.fault('consumption record not settled', error);
    return charge === null ? null : { charge, isBooked: false };
  }
}

/** Why a request failed, as its record says; `null` for a finished answer. */
function failureOf(summary: Uncharged): RecordedFailure | null {
  const { refusal, cause, attempts } = summary;
  if (refusal === null) return null;
  const isSaid = attempts.some((attempt) => attempt.cause === cause);
  return { code: codeOf(summary), cause: isSaid ? null : cause };
}

/** A summary whose charge is not known yet. */
type Uncharged = Omit<ExchangeSummary, 'chargeNanos'> & { chargeNanos: number };

function summarize(result: ExchangeResult, exchange: Exchange, nowMs: number): Uncharged {
  const { stage, client, arrivedMs, delivery, requestId, protocol, trace, permits } = exchange;
  const attempts = attemptsOf(stage);
  const firstTextMs = firstTextOf(stage);
  const outcome = endOf(result);
  const refusal = refusalOfResult(result);
  const facts = stageFacts(stage, arrivedMs);
  const { keyId, keyName, tag, mode, model, stripped, admittedMs, limiterMs, slotWaitMs, queuedMs } = facts;
  const { cause, upstreamError } = wordsOf(result);
  // One literal: a spread of so many fields costs more than all of them.
  return {
    keyId,
    keyName,
    tag,
    isTryOut: client.triedKeyId !== null,
    clientAddress: client.loggedAddress,
    mode,
    model,
    stripped,
    admittedMs,
    limiterMs,
    slotWaitMs,
    queuedMs,
    permits: permits === null ? null : permits.summary,
    requestedModel: requestedModelOf(stage, client.authorization),
    requestId,
    protocol,
    upstream: attempts?.upstream ?? null,
    outcome,
    replayOf: stage.stage === 'joined' ? stage.requestId : null,
    status: delivery.sentStatus ?? statusToSend(outcome, refusal),
    refusal,
    cause,
    upstreamError,
    finishReason: result.kind === 'finished' ? result.reason : null,
    usage: usageOf(result),
    attempts: attempts?.summaries() ?? [],
    hedge: attempts?.hedge ?? null,
    streamOpened: delivery.wasOpened,
    firstTextMs: since(firstTextMs, arrivedMs),
    handoverMs: firstTextMs === null ? null : since(delivery.firstTextSentMs, firstTextMs),
    totalMs: nowMs - arrivedMs,
    traceId: trace.id,
    chargeNanos: 0,
  };
}

/** The status that `conclude` is about to send. */
function statusToSend(outcome: Uncharged['outcome'], refusal: Uncharged['refusal']): number {
  if (refusal === null) return 200;
  return outcome === 'client_closed' ? clientClosedStatus : statusOf(refusal.code);
}

function since(momentMs: number | null, startMs: number): number | null {
  return momentMs === null ? null : momentMs - startMs;
}
