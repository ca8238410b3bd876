import type { MetricSources } from '../../src/telemetry/metrics/figures.ts';

/** The sources of the metrics of a process that has nothing to show. */
export const noSources: MetricSources = {
  upstreamLimiters: () => [],
  upstreamStates: () => ({}),
  upstreamModelStates: () => [],
  modelAvailability: () => [],
  ledgerFigures: () => null,
  settlementLagMs: () => 0,
  oldestRecordAgeMs: () => null,
  isDatabaseUsable: () => true,
  databaseLogBytes: () => null,
  oldestEventAgeMs: () => null,
  topKeys: () => [],
  topGroups: () => [],
  ledgerRoot: () => null,
  logLinesDropped: () => 0,
  keptAnswerBytes: () => 0,
};
