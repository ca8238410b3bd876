import type { Telemetry } from '../domain/ports/telemetry.ts';
import type { Log } from './logger.ts';
import type { Metrics } from './metrics.ts';

/** Tells the metrics and the log what the pipeline reports. A fault of theirs is no fault of the request. */
export function createTelemetry(metrics: Metrics, log: Pick<Log, 'exchangeEnded' | 'fault'>): Telemetry {
  const safely = (tell: () => void): void => {
    try {
      tell();
    } catch (error) {
      log.fault('something could not be counted', error);
    }
  };
  return {
    exchangeBegan: (protocol) => safely(() => metrics.exchangeBegan(protocol)),
    streamOpened: (protocol) => safely(() => metrics.streamOpened(protocol)),
    exchangeEnded(summary) {
      safely(() => metrics.exchangeEnded(summary));
      safely(() => log.exchangeEnded(summary));
    },
    fault: log.fault,
  };
}
