import { createRequire } from 'node:module';
import { pino } from 'pino';
import type { PinoPretty } from 'pino-pretty';
import { formatUsd } from '../shared/money.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ReportFault, Telemetry } from '../domain/ports/telemetry.ts';
import { describeCrash } from './describe-crash.ts';
import { codeOf } from './error-code.ts';
import { terminalLine } from './terminal-line.ts';
import { openStandardStream } from './log-destination.ts';
import { sumKeylessRefusals } from './keyless-refusals.ts';

/** How long lines that still wait are given when the log is closed, in milliseconds. */
const closeMs = 1_000;

/** The log: one line per request and per fault. Prompts, answers and secrets never come this far. */
export interface Log {
  readonly exchangeEnded: Telemetry['exchangeEnded'];
  readonly fault: ReportFault;
  /** Something that is no fault of ours, and that an operator wants to know. */
  readonly notice: (message: string, upstream?: string) => void;
  /** How many connections the listeners refused or closed since the last such line, by why. */
  readonly connectionsRefused: (counts: Readonly<Record<string, number>>) => void;
  /** An error that nothing caught, and that ends the process. */
  readonly crash: (error: unknown) => void;
  /** How many lines were lost so far: the destination failed, or did not take them. */
  readonly droppedLines: number;
  /** Writes what is summed up, and waits a second at most for lines that still wait to be written. */
  close(): Promise<void>;
}

/** Where lines go, one at a time. */
export interface LineWriter {
  write(line: string): void;
}

/** Writes to `writer`, or to standard output. `level: 'silent'` writes nothing. */
export function createLog(level: 'info' | 'warn' | 'silent', clock: Clock, writer?: LineWriter): Log {
  const destination = writer === undefined ? openStandardOutput() : guarded(writer);
  const logger = pino({ level, base: null }, destination);
  const keyless = sumKeylessRefusals(clock, (sum) => logger.info(sum, 'requests without a valid key'));
  return {
    exchangeEnded(summary) {
      if (keyless.takes(summary)) return;
      logger.info(requestLine(summary), 'request');
      for (const { upstream, result, cause } of summary.attempts)
        if (result === 'auth') logger.error({ upstream, cause }, 'an upstream does not accept its apiKey');
    },
    notice: (message, upstream) => logger.warn(upstream === undefined ? {} : { upstream }, message),
    connectionsRefused: (counts) => logger.warn({ counts }, 'connections refused'),
    fault: (message, error) =>
      logger.error({ reason: error instanceof Error ? error.message : String(error) }, message),
    crash: (error) => logger.fatal(describeCrash(error), 'unhandled error: the process ends'),
    get droppedLines() {
      return destination.droppedLines;
    },
    async close() {
      keyless.flush();
      await destination.flush(closeMs);
    },
  };
}

/** What the log needs of a place to write to. */
interface Destination extends LineWriter {
  readonly droppedLines: number;
  flush(limitMs: number): Promise<boolean>;
}

/** A destination of the app around: if it throws, the line is lost and nothing else. */
function guarded(writer: LineWriter): Destination {
  let droppedLines = 0;
  return {
    write(line) {
      try {
        writer.write(line);
      } catch {
        droppedLines++;
      }
    },
    get droppedLines() {
      return droppedLines;
    },
    flush: async () => true,
  };
}

/** JSON for machines, and lines to read for a terminal. What makes those is loaded only then. */
function openStandardOutput(): Destination {
  const describe = process.stdout.isTTY ? prettyLines() : (line: string): string => line;
  const output = openStandardStream(process.stdout, (lines) =>
    describe(
      `${JSON.stringify({ level: 40, time: Date.now(), lines, msg: 'log lines could not be written' })}\n`,
    ),
  );
  return {
    write: (line) => output.write(describe(line)),
    get droppedLines() {
      return output.droppedLines;
    },
    flush: (limitMs) => output.flush(limitMs),
  };
}

function prettyLines(): (line: string) => string {
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  return prettyFactory({
    hideObject: true,
    messageFormat: (line) => terminalLine(line as Parameters<typeof terminalLine>[0]),
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
    cacheWriteTokens: summary.usage?.cacheWriteTokens ?? null,
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
