import type { Telemetry } from '../domain/ports.ts';
import type { Log } from './logger.ts';
import type { Metrics } from './metrics.ts';

/** Tells the metrics and the log what the pipeline reports. */
export function createTelemetry(metrics: Metrics, log: Log): Telemetry {
  return {
    exchangeBegan: metrics.exchangeBegan,
    streamOpened: metrics.streamOpened,
    exchangeEnded(summary) {
      metrics.exchangeEnded(summary);
      log.exchangeEnded(summary);
    },
    fault: log.fault,
  };
}
