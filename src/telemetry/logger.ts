import { createRequire } from 'node:module';
import { pino } from 'pino';
import type { DestinationStream } from 'pino';
import type { PinoPretty } from 'pino-pretty';
import { formatUsd } from '../shared/money.ts';
import type { ExchangeSummary, ReportFault, Telemetry } from '../domain/ports.ts';
import { codeOf } from './error-code.ts';
import { lineForPeople } from './line-for-people.ts';

/** The log: one line per request and per fault. Prompts, answers and secrets never come this far. */
export interface Log {
  readonly exchangeEnded: Telemetry['exchangeEnded'];
  readonly fault: ReportFault;
  /** Something that is no fault of ours, and that an operator wants to know. */
  readonly notice: (message: string, upstream: string) => void;
}

/** Writes to `destination`, or to standard output. `level: 'silent'` writes nothing. */
export function createLog(level: 'info' | 'warn' | 'silent', destination = standardOutput()): Log {
  const logger = pino({ level, base: null }, destination);
  return {
    exchangeEnded(summary) {
      logger.info(requestLine(summary), 'request');
      for (const { upstream, result, cause } of summary.attempts)
        if (result === 'auth') logger.error({ upstream, cause }, 'an upstream does not accept its apiKey');
    },
    notice: (message, upstream) => logger.warn({ upstream }, message),
    fault: (message, error) =>
      logger.error({ reason: error instanceof Error ? error.message : String(error) }, message),
  };
}

/** JSON for machines, and lines to read for a terminal. What makes those is loaded only then. */
function standardOutput(): DestinationStream {
  if (!process.stdout.isTTY) return pino.destination(1);
  const { build } = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  return build({
    sync: true,
    hideObject: true,
    messageFormat: (line) => lineForPeople(line as Parameters<typeof lineForPeople>[0]),
  });
}

/** Every field is named here, so that nothing is logged by being there. */
function requestLine(summary: ExchangeSummary): object {
  return {
    requestId: summary.requestId,
    keyId: summary.keyId,
    protocol: summary.protocol,
    mode: summary.mode,
    model: summary.model,
    upstream: summary.upstream,
    outcome: summary.outcome,
    status: summary.status,
    code: codeOf(summary),
    cause: summary.cause,
    inputTokens: summary.usage?.inputTokens ?? null,
    cachedInputTokens: summary.usage?.cachedInputTokens ?? null,
    outputTokens: summary.usage?.outputTokens ?? null,
    charge: formatUsd(summary.chargeNanos),
    stripped: summary.stripped,
    attempts: summary.attempts.map((made) => ({ ...made, durationMs: rounded(made.durationMs) })),
    queuedMs: rounded(summary.queuedMs),
    firstTextMs: rounded(summary.firstTextMs),
    handoverMs: rounded(summary.handoverMs),
    totalMs: rounded(summary.totalMs),
    ...(summary.traceId === null ? {} : { traceId: summary.traceId }),
  };
}

/** Milliseconds to a tenth: more digits are noise to read past. */
function rounded(milliseconds: number | null): number | null {
  return milliseconds === null ? null : Math.round(milliseconds * 10) / 10;
}
