import { expect, test } from 'vitest';
import { matchers, metricNames } from './promql.ts';

test('metric names are distinguished from functions, labels, keywords, durations and numbers', () => {
  const expression = `
    histogram_quantile(0.95, sum by (le, a) (rate(x_bucket{le="y_total"}[5m])))
    / on (job, b) (model:x:rate5m > 0) or 0 * count(up{job="z"} offset 30m) * 1e9 unless vector(0)`;
  expect(metricNames(expression)).toEqual(['x_bucket', 'model:x:rate5m', 'up']);
});

test('matchers are parsed with their values', () => {
  expect(matchers('rate(x_total{a="1", b!~"p|q.*"}[5m]) + y{c=~"5.."} + z')).toEqual([
    { metric: 'x_total', label: 'a', values: ['1'] },
    { metric: 'x_total', label: 'b', values: ['p', 'q.*'] },
    { metric: 'y', label: 'c', values: ['5..'] },
  ]);
});
