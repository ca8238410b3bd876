import { formatUsd } from '../../shared/money.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import { codeOf } from '../../domain/exchange-summary.ts';

/** The line's level, `info`, as pino writes it. */
const level = 30;

/**
 * The log line of a request, in the very form that pino gives to all other lines. It is written as a whole: pino would
 * write each of its thirty fields apart, which takes twice as long, and no other line is written for every request.
 */
export function requestLine(summary: ExchangeSummary, nowMs: number, worker: number | null = null): string {
  const fields = JSON.stringify(fieldsOf(summary));
  const from = worker === null ? '' : `"worker":${worker},`;
  return `{"level":${level},"time":${nowMs},${from}${fields.slice(1, -1)},"msg":"request"}\n`;
}

/** Every field is named here: a field added to the summary must not reach the log by itself. */
function fieldsOf(summary: ExchangeSummary): object {
  const { usage, traceId, clientAddress, tag, hedge } = summary;
  return {
    requestId: summary.requestId,
    keyId: summary.keyId,
    keyName: summary.keyName,
    // A field without a value is left out.
    clientAddress: clientAddress === null ? undefined : clientAddress,
    tag: tag === null ? undefined : tag,
    tryOut: summary.isTryOut ? true : undefined,
    protocol: summary.protocol,
    mode: summary.mode,
    model: summary.model,
    requestedModel: summary.requestedModel,
    upstream: summary.upstream,
    outcome: summary.outcome,
    replayOf: summary.replayOf === null ? undefined : summary.replayOf,
    status: summary.status,
    code: codeOf(summary),
    cause: summary.cause,
    upstreamError: summary.upstreamError,
    inputTokens: usage === null ? null : usage.inputTokens,
    cachedInputTokens: usage === null ? null : usage.cachedInputTokens,
    cacheWriteTokens: usage === null ? null : usage.cacheWriteTokens,
    outputTokens: usage === null ? null : usage.outputTokens,
    charge: formatUsd(summary.chargeNanos),
    stripped: summary.stripped,
    attempts: summary.attempts.map((made) => ({
      ...made,
      startedMs: rounded(made.startedMs),
      durationMs: rounded(made.durationMs),
    })),
    slotWaitMs: summary.slotWaitMs === 0 ? undefined : rounded(summary.slotWaitMs),
    permitWaitMs:
      summary.permits === null || summary.permits.waitMs === 0 ? undefined : rounded(summary.permits.waitMs),
    refusedBy: summary.permits?.refusal?.upstreams,
    hedge: hedge === null ? undefined : hedge,
    queuedMs: rounded(summary.queuedMs),
    firstTextMs: rounded(summary.firstTextMs),
    handoverMs: rounded(summary.handoverMs),
    totalMs: rounded(summary.totalMs),
    traceId: traceId === null ? undefined : traceId,
  };
}

/** Milliseconds to one decimal, to keep the line readable. */
function rounded(milliseconds: number | null): number | null {
  return milliseconds === null ? null : Math.round(milliseconds * 10) / 10;
}
