import { expect, test } from 'vitest';
import { meterInstruments } from '../../src/second-meter/instruments.ts';
import type { DriftFigures } from '../../src/second-meter/usage-drift.ts';
import { exposeSum } from '../../src/telemetry/metrics/metric-sums.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';

const pair = { upstream: 'far', model: 'large', kind: 'output' } as const;

/** The metrics of a process with a second meter that has some figures. */
function open(figures: () => readonly DriftFigures[]) {
  const metrics = createMetrics();
  const { samples } = metrics.add((constructors) => meterInstruments(constructors, { figures }));
  return { metrics, samples };
}

const ratiosIn = (text: string) => text.match(/^textgate_usage_(reported|drift).*$/gm);

test('a pair has a ratio, and a drift once there is one; without figures it has no series', async () => {
  let figures: readonly DriftFigures[] = [{ ...pair, ratio: 1.2, drift: null }];
  const { metrics } = open(() => figures);
  const shown = async () => ratiosIn((await metrics.expose()).body);
  const labels = 'upstream="far",model="large",kind="output"';
  expect(await shown()).toEqual([`textgate_usage_reported_ratio{${labels}} 1.2`]);
  figures = [{ ...pair, ratio: 1.3, drift: { ratio: 1.1, uncertainty: 0.02 } }];
  expect(await shown()).toEqual([
    `textgate_usage_reported_ratio{${labels}} 1.3`,
    `textgate_usage_drift_ratio{${labels}} 1.1`,
    `textgate_usage_drift_uncertainty{${labels}} 0.02`,
  ]);
  figures = [];
  expect(await shown()).toBeNull();
});

test('each result of a sample has a series before the first one', async () => {
  const { metrics, samples } = open(() => []);
  samples('dropped').inc();
  expect((await metrics.expose()).body.match(/^textgate_usage_samples_total.*$/gm)).toEqual([
    'textgate_usage_samples_total{result="compared"} 0',
    'textgate_usage_samples_total{result="skipped"} 0',
    'textgate_usage_samples_total{result="dropped"} 1',
    'textgate_usage_samples_total{result="failed"} 0',
  ]);
});

test('a ratio is the mean of all processes, and its uncertainty the largest', async () => {
  const drifts = [
    { ratio: 1, uncertainty: 0.01 },
    { ratio: 1.1, uncertainty: 0.04 },
  ];
  const texts = drifts.map((drift) =>
    open(() => [{ ...pair, ratio: 2 * drift.ratio, drift }]).metrics.figures(),
  );
  const values = ratiosIn(await exposeSum(await Promise.all(texts), null))?.map((line) => line.split(' ')[1]);
  expect(values).toEqual(['2.1', '1.05', '0.04']);
});
