import { statusOf } from '../shared/errors.ts';
import type { Attempt } from '../domain/consumption.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import { chargeFor } from './charge.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';

/** The status noted for a client that left before it got one. */
const clientClosedStatus = 499;

/**
 * Closes the books of an exchange, whatever its ending: the record is settled and the slot given back before
 * the client sees the end, so that its next request finds both done.
 */
export async function settle(ending: Ending, exchange: Exchange, ports: Ports): Promise<void> {
  const { notes, requestId } = exchange;
  const summary = summarize(ending, exchange, ports.clock.monotonicMs());
  const { outcome, status, totalMs, firstTextMs: firstByteMs } = summary;
  let chargeNanos = 0;
  if (notes.recorded) {
    try {
      const charge = await chargeFor(outcome, summary.usage, exchange, ports);
      ({ chargeNanos } = charge);
      const { upstream, attempts } = summary;
      const settled = { requestId, outcome, upstream, attempts: attempts.map(recorded), status };
      await ports.records.settle({ ...settled, ...charge, firstTextMs: firstByteMs, totalMs });
    } catch (error) {
      ports.telemetry.fault('a consumption record could not be settled', error);
    }
  }
  if (notes.key !== null) await releaseSlot(notes.key.id, requestId, ports);
  const charged = { ...summary, chargeNanos };
  ports.telemetry.exchangeEnded(charged);
  exchange.trace.ended(charged);
}

/** A limiter that fails here must not cut an answer that is whole and paid for. */
async function releaseSlot(keyId: string, requestId: string, ports: Ports): Promise<void> {
  try {
    await ports.limiter.release(keyId, requestId);
  } catch (error) {
    ports.telemetry.fault('a slot could not be given back', error);
  }
}

function summarize(ending: Ending, exchange: Exchange, nowMs: number): Omit<ExchangeSummary, 'chargeNanos'> {
  const { notes, arrivedMs } = exchange;
  const refusal = 'refusal' in ending ? ending.refusal : null;
  return {
    requestId: exchange.requestId,
    keyId: notes.key?.id ?? null,
    protocol: exchange.protocol,
    mode: notes.stream ? 'stream' : 'sync',
    model: notes.model?.id ?? null,
    upstream: notes.route?.upstream ?? notes.attempts.at(-1)?.upstream ?? null,
    outcome: ending.outcome,
    status: notes.passedStatus ?? statusSent(ending, notes.streamOpened),
    refusal,
    cause: ('refusal' in ending ? ending.cause : undefined) ?? null,
    finishReason: 'refusal' in ending ? null : ending.finish.reason,
    usage: 'refusal' in ending ? ending.usage : ending.finish.usage,
    stripped: notes.stripped,
    attempts: notes.attempts.map((made) => ({ ...made, violations: [...made.violations] })),
    streamOpened: notes.streamOpened,
    admittedMs: since(notes.admittedMs, arrivedMs),
    slotWaitMs: notes.slotWaitMs,
    queuedMs: since(notes.dispatchedMs, arrivedMs),
    firstTextMs: since(notes.firstTextMs, arrivedMs),
    handoverMs: notes.firstTextMs === null ? null : since(notes.firstTextSentMs, notes.firstTextMs),
    totalMs: nowMs - arrivedMs,
    traceId: exchange.trace.id,
  };
}

/** What of an attempt is kept: its cause may name addresses, and is for the log. */
function recorded({ upstream, model, result, durationMs, usage }: Attempt): Attempt {
  return { upstream, model, result, durationMs: Math.round(durationMs), usage };
}

function statusSent(ending: Ending, streamOpened: boolean): number {
  if (streamOpened || !('refusal' in ending)) return 200;
  return ending.outcome === 'client_closed' ? clientClosedStatus : statusOf(ending.refusal.code);
}

function since(momentMs: number | null, startMs: number): number | null {
  return momentMs === null ? null : momentMs - startMs;
}
