import { styleText } from 'node:util';
import { pino } from 'pino';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import type { LogFields } from '../../domain/ports/telemetry.ts';
import { openStandardStream } from './log-destination.ts';
import type { LogDestination } from './log-destination.ts';
import { sumKeylessRefusals } from './refusal-sums.ts';
import type { Counts } from './refusal-sums.ts';
import { requestLine } from './request-line.ts';
import { terminalLine } from './terminal-line.ts';
import type { LineFields, Terminal } from './terminal-line.ts';

/** How long closing the log waits for lines to be written, in milliseconds. */
const closeMs = 1_000;

/** The width of a terminal that does not report one, in columns. */
const usualColumns = 100;

/** From `debug` on, each attempt and each request without a valid key has a line of its own. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'silent';

/** JSON lines for programs, or aligned lines for people. */
export type LogFormat = 'json' | 'text';

/** The log: one line per request and per fault, each a fixed message and fields. No prompts, answers or secrets get here. */
export type Log = ReturnType<typeof createLog>;

/** Takes the log, one line at a time. */
interface LineWriter {
  write(line: string): void;
}

/**
 * Writes to `writer`, or to standard output. `level: 'silent'` writes nothing. Without a format, a terminal gets lines for
 * people, and everything else gets JSON. Every line of one of several workers has its number.
 */
export function createLog(
  level: LogLevel,
  clock: Clock,
  writer?: LineWriter,
  format?: LogFormat,
  worker: number | null = null,
) {
  const destination =
    writer === undefined ? openStandardOutput(format, worker !== null) : guarded(writer, format ?? 'json');
  const logger = pino({ level, base: worker === null ? null : { worker } }, destination);
  const keyless = sumKeylessRefusals(clock, (sum) => logger.info(sum, 'requests without a valid key'));
  const isDebugging = logger.isLevelEnabled('debug');
  const hasRequests = logger.isLevelEnabled('info');
  return {
    exchangeEnded(summary: ExchangeSummary): void {
      if (!isDebugging && keyless.countIfKeyless(summary)) return;
      if (hasRequests) destination.write(requestLine(summary, Date.now(), worker));
      const { requestId } = summary;
      if (isDebugging)
        for (const attempt of summary.attempts) logger.debug({ requestId, ...attempt }, 'upstream attempt');
      for (const { upstream, result, cause, upstreamError } of summary.attempts)
        if (result === 'auth')
          logger.error({ upstream, cause, upstreamError }, 'upstream rejected its API key');
    },
    /** Logs what is not a fault of the gateway but matters to operators, at level `warn`. */
    notice: (message: string, fields: LogFields = {}) => logger.warn(fields, message),
    /** Logs what operators asked for, at level `info`. */
    info: (message: string, fields: LogFields = {}) => logger.info(fields, message),
    /** Logs the connections refused or closed since the last such line, by reason. */
    connectionsRefused: (counts: Counts) => logger.warn({ counts }, 'connections refused'),
    /** Logs the requests that were refused before any route since the last such line, by reason. */
    requestsRefused: (counts: Counts) => logger.info({ counts }, 'requests refused before any route'),
    /** Logs a fault, at level `error`. */
    fault: (message: string, error: unknown, fields: LogFields = {}) =>
      logger.error({ ...fields, reason: error instanceof Error ? error.message : String(error) }, message),
    /** Logs an uncaught error that ends the process, at level `fatal`. */
    crash: (error: unknown) => logger.fatal(describeCrash(error), 'uncaught error: shutting down'),
    /** Lines lost since the start: the destination failed or was too slow. */
    get droppedLines() {
      return destination.droppedLines;
    },
    /** Writes the counts not logged yet, and waits up to a second until all lines are written. */
    async close(): Promise<void> {
      keyless.flush();
      await destination.flush(closeMs);
    },
  };
}

/** A destination of the app around us: if it throws, only the line is lost. */
function guarded(writer: LineWriter, format: LogFormat): LogDestination {
  const describe = describerOf(format, { columns: usualColumns, paint: (_style, text) => text });
  let droppedLines = 0;
  return {
    write(line) {
      try {
        writer.write(describe(line));
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

function openStandardOutput(
  format: LogFormat = process.stdout.isTTY ? 'text' : 'json',
  isShared: boolean,
): LogDestination {
  const describe = describerOf(format, {
    get columns() {
      return process.stdout.columns ?? usualColumns;
    },
    // Honours NO_COLOR and FORCE_COLOR, and leaves colours out of pipes and files.
    paint: (style, text) => styleText(style, text, { stream: process.stdout }),
  });
  const describeLoss = (lines: number): string =>
    describe(`${JSON.stringify({ level: 40, time: Date.now(), lines, msg: 'log lines dropped' })}\n`);
  const output = openStandardStream(process.stdout, describeLoss, isShared);
  return {
    write: (line) => output.write(describe(line)),
    get droppedLines() {
      return output.droppedLines;
    },
    flush: (limitMs) => output.flush(limitMs),
  };
}

function describerOf(format: LogFormat, terminal: Terminal): (line: string) => string {
  if (format === 'json') return (line) => line;
  return (line) => terminalLine(JSON.parse(line) as LineFields, terminal);
}

/** How much of an error's message is logged, in characters, and how many frames of its stack. */
const maxMessageChars = 300;
const maxFrames = 20;

/**
 * Describes an error from anywhere, whose message may quote a prompt: those of `JSON.parse` and of Node's argument checks
 * do. The message is cut at the first quotation mark; the frames of the stack say where the error was thrown. A thrown
 * value that is not an `Error` is not logged at all.
 */
function describeCrash(error: unknown) {
  if (!(error instanceof Error)) return { error: typeof error, code: null, reason: null, stack: [] };
  const { code } = error as NodeJS.ErrnoException;
  return {
    error: error.name,
    code: typeof code === 'string' ? code : null,
    reason: error.message.replace(/(^|\W)["'`‘“].*/s, '$1…').slice(0, maxMessageChars),
    stack: framesOf(error),
  };
}

/** The frames without the message before them, which may have lines that look like frames. */
function framesOf({ message, stack = '' }: Error): readonly string[] {
  const start = stack.indexOf(message);
  if (start === -1) return [];
  return stack
    .slice(start + message.length)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, maxFrames);
}
