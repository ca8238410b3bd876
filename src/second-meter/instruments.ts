import type { Constructors } from '../telemetry/metrics/series.ts';
import type { DriftFigures, UsageDrift } from './usage-drift.ts';

/**
 * What became of a sample: compared; too short, too long or not comparable (`skipped`); dropped because too many waited; or its
 * count failed.
 */
const sampleResults = ['compared', 'skipped', 'dropped', 'failed'] as const;
export type SampleResult = (typeof sampleResults)[number];

/** The metrics of the second meter: the samples, which are counted here, and the figures of `drift`, read at each scrape. */
export function meterInstruments(
  { counterBy, collectedGauge }: Constructors,
  drift: Pick<UsageDrift, 'figures'>,
) {
  /** Pairs without a value have no series: upstreams and models may have left the config. */
  const show = (
    name: string,
    help: string,
    combination: 'average' | 'max',
    valueOf: (figures: DriftFigures) => number | undefined,
  ): void =>
    collectedGauge(['upstream', 'model', 'kind'], name, help, combination, () =>
      drift.figures().flatMap((figures) => {
        const { upstream, model, kind } = figures;
        const value = valueOf(figures);
        return value === undefined ? [] : [{ labels: { upstream, model, kind }, value }];
      }),
    );

  const samples = counterBy(
    ['result'],
    'textgate_usage_samples_total',
    'Answers that were sampled to count their tokens beside the upstream, by what became of it.',
  );
  for (const result of sampleResults) samples(result).inc(0);
  // Each process samples its own answers.
  show(
    'textgate_usage_reported_ratio',
    "Tokens that an upstream reports per token that this service counts, by the model's name there: the median of the last 100 samples.",
    'average',
    ({ ratio }) => ratio,
  );
  show(
    'textgate_usage_drift_ratio',
    'textgate_usage_reported_ratio divided by what was usual in the up to 1,000 samples before; 1 for no change.',
    'average',
    (figures) => figures.drift?.ratio,
  );
  show(
    'textgate_usage_drift_uncertainty',
    'How far textgate_usage_drift_ratio may be from 1 by chance, as its samples scatter.',
    'max',
    (figures) => figures.drift?.uncertainty,
  );
  return { samples };
}
