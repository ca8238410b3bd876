import fc from 'fast-check';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import {
  Distribution,
  Level,
  Tally,
  registerDistributions,
  registerNumbers,
  Series,
  maxLines,
} from '../../src/telemetry/metrics/series.ts';
import { propertyRun } from '../support/property-run.ts';

const names = ['model', 'upstream'] as const;
const bounds = [0.005, 0.25, 1, 1_024];

/** Names that have to be escaped, and one that is a number. */
const name = fc.constantFrom('small', 'a "quoted" name', String.raw`back\slash`, 'two\nlines', '7', '');
/** Values between, at and above the bounds, and below zero. */
const value = fc.oneof(fc.constantFrom(...bounds, 0, -1), fc.double({ noNaN: true, min: 0, max: 2_000 }));
const changes = fc.array(fc.record({ model: name, upstream: name, value }), { maxLength: 40 });

describe('the exposition of series', () => {
  test('equals that of the library, byte for byte, in the order of their first use', async () => {
    await fc.assert(
      fc.asyncProperty(changes, async (made) => {
        const [own, reference] = [new Registry(), new Registry()];
        const tallies = new Series(names, () => new Tally());
        const levels = new Series(names, () => new Level());
        const distributions = new Series(names, () => new Distribution(bounds));
        const help = 'What it is, in \\ and\n"lines".';
        registerNumbers(own, 'counter', { name: 'counted_total', help }, tallies);
        registerNumbers(own, 'gauge', { name: 'open', help }, levels);
        registerDistributions(own, { name: 'took_seconds', help }, bounds, distributions);
        const shared = { help, labelNames: [...names], registers: [reference] };
        const counter = new Counter({ name: 'counted_total', ...shared });
        const gauge = new Gauge({ name: 'open', ...shared });
        const histogram = new Histogram({ name: 'took_seconds', ...shared, buckets: bounds });
        for (const { model, upstream, value: amount } of made) {
          const counted = Math.abs(amount);
          tallies.at([model, upstream]).inc(counted);
          counter.labels(model, upstream).inc(counted);
          if (amount > 1) levels.at([model, upstream]).dec();
          else levels.at([model, upstream]).inc();
          if (amount > 1) gauge.labels(model, upstream).dec();
          else gauge.labels(model, upstream).inc();
          distributions.at([model, upstream]).observe(amount);
          histogram.labels(model, upstream).observe(amount);
        }
        expect(await own.metrics()).toBe(await reference.metrics());
      }),
      propertyRun(),
    );
  });

  test('shows the figures of each scrape, and not those of the first', async () => {
    const registry = new Registry();
    const series = new Series(names, () => new Tally());
    registerNumbers(registry, 'counter', { name: 'counted_total', help: 'x' }, series);
    series.at(['a', 'b']).inc();
    expect(await registry.metrics()).toContain('counted_total{model="a",upstream="b"} 1\n');
    series.at(['a', 'b']).inc(2);
    expect(await registry.metrics()).toContain('counted_total{model="a",upstream="b"} 3\n');
  });
});

test('a metric that has all the series it may have counts further ones in a series of their own', () => {
  const series = new Series(names, () => new Tally(), maxLines / 2);
  for (const model of ['a', 'b', 'c', 'd', 'a']) series.at([model, 'up']).inc();
  expect(series.all.map(({ labels, cell }) => [labels['model'], labels['upstream'], cell.value])).toEqual([
    ['a', 'up', 2],
    ['b', 'up', 1],
    ['other', 'other', 2],
  ]);
});

test.each([Number.NaN, Number.POSITIVE_INFINITY, -1])(
  '%s is not counted, so that sums stay numbers',
  (odd) => {
    const tally = new Tally();
    tally.inc(1);
    expect(() => tally.inc(odd)).toThrow('cannot be counted');
    expect(tally.value).toBe(1);
  },
);

test.each([Number.NaN, Number.POSITIVE_INFINITY])('%s is not observed, so that sums stay numbers', (odd) => {
  const distribution = new Distribution(bounds);
  expect(() => distribution.observe(odd)).toThrow('cannot be observed');
  expect(distribution).toMatchObject({ sum: 0, counts: [0, 0, 0, 0, 0] });
});
