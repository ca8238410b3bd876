import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import type { ReportFault, Telemetry } from '../domain/ports.ts';

/** The log: one JSON line per request and per fault. Prompts, answers and secrets never come this far. */
export interface Log {
  readonly exchangeEnded: Telemetry['exchangeEnded'];
  readonly fault: ReportFault;
}

/** Writes to `destination`, or to standard output. `level: 'silent'` writes nothing. */
export function createLog(level: 'info' | 'warn' | 'silent', destination?: DestinationStream): Log {
  const logger: Logger = pino({ level, base: null }, ...(destination === undefined ? [] : [destination]));
  return {
    exchangeEnded(summary) {
      const { refusal, usage, ...rest } = summary;
      logger.info(
        {
          ...rest,
          code: summary.outcome === 'client_closed' ? null : (refusal?.code ?? null),
          inputTokens: usage?.inputTokens ?? null,
          outputTokens: usage?.outputTokens ?? null,
        },
        'request',
      );
      for (const { upstream, result, cause } of summary.attempts)
        if (result === 'auth') logger.error({ upstream, cause }, 'an upstream does not accept its apiKey');
    },
    fault: (message, error) =>
      logger.error({ reason: error instanceof Error ? error.message : String(error) }, message),
  };
}
