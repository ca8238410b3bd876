import type { DriftFigures } from '../../domain/money/usage-drift.ts';
import type { Constructors } from './series.ts';

/** What the second meter finds. */
export function meterInstruments({ counterBy, gauge }: Constructors) {
  const labels = ['upstream', 'model', 'kind'];
  return {
    samples: counterBy(
      ['result'],
      'textgate_usage_samples_total',
      'Answers that were sampled to count their tokens beside the upstream, by what became of it.',
    ),
    reportedRatio: gauge(
      'textgate_usage_reported_ratio',
      "Tokens that an upstream reports per token that this service counts, by the model's name there: the median of the last 100 samples.",
      labels,
    ),
    driftRatio: gauge(
      'textgate_usage_drift_ratio',
      'textgate_usage_reported_ratio divided by what was usual in the up to 1,000 samples before; 1 for no change.',
      labels,
    ),
    driftUncertainty: gauge(
      'textgate_usage_drift_uncertainty',
      'How far textgate_usage_drift_ratio may be from 1 by chance, as its samples scatter.',
      labels,
    ),
  };
}

/** Pairs without figures have no series: upstreams and models may have left the config. */
export function showDrift(
  all: readonly DriftFigures[],
  { reportedRatio, driftRatio, driftUncertainty }: ReturnType<typeof meterInstruments>,
): void {
  for (const gauge of [reportedRatio, driftRatio, driftUncertainty]) gauge.reset();
  for (const { upstream, model, kind, ratio, drift } of all) {
    const labels = { upstream, model, kind };
    reportedRatio.set(labels, ratio);
    if (drift === null) continue;
    driftRatio.set(labels, drift.ratio);
    driftUncertainty.set(labels, drift.uncertainty);
  }
}
