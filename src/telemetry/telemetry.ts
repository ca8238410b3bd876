import type { ReportFault, Telemetry } from '../domain/ports/telemetry.ts';

/** A receiver of the pipeline's reports, such as the metrics or the log; it leaves out those that it has no use for. */
export type TelemetrySink = Partial<Omit<Telemetry, 'fault'>>;

/** Passes every report on to every sink. A sink that throws is logged, and fails neither the request nor other sinks. */
export function createTelemetry(sinks: readonly TelemetrySink[], fault: ReportFault): Telemetry {
  const each = (report: (sink: TelemetrySink) => void): void => {
    for (const sink of sinks)
      try {
        report(sink);
      } catch (error) {
        fault('recording metrics or writing the log failed', error);
      }
  };
  return {
    exchangeBegan: (protocol) => each((sink) => sink.exchangeBegan?.(protocol)),
    waitBegan: (reason) => each((sink) => sink.waitBegan?.(reason)),
    waitEnded: (reason, waitedMs) => each((sink) => sink.waitEnded?.(reason, waitedMs)),
    streamOpened: (protocol) => each((sink) => sink.streamOpened?.(protocol)),
    exchangeEnded: (summary) => each((sink) => sink.exchangeEnded?.(summary)),
    fault,
  };
}
