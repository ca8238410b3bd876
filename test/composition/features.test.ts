import { expect, test } from 'vitest';
import { createFeatures } from '../../src/composition/features.ts';
import { checkConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema/schema.ts';
import type { SettledObserver } from '../../src/pipeline/ports.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';

type Feature = NonNullable<Parameters<typeof createFeatures>[2]>[number];

function configWith(sample: string): Config {
  const upstreams = { own: { url: 'demo:' } };
  const models = { small: { routes: [{ upstream: 'own', model: 'demo' }], free: true as const } };
  return checkConfig({ upstreams, models, metering: { sample } }, 'the config');
}

function open(...all: [features?: readonly Feature[]]) {
  const metrics = createMetrics();
  const faults: string[] = [];
  const tokens = { countWhenIdle: async () => 1 };
  const features = createFeatures(
    { tokens, metrics, random: () => expect.fail('a number was drawn') },
    (message, error) => void faults.push(`${message}: ${String(error)}`),
    ...all,
  );
  return { metrics, faults, features };
}

test('a feature that a config does not have has no observer, and no metrics', async () => {
  const { metrics, features } = open();
  const settled: SettledObserver[] = [];
  features.addObservers(configWith('0%'), settled);
  await features.loaded();
  expect(settled).toEqual([]);
  expect((await metrics.expose()).body).not.toContain('textgate_usage_samples');
  features.addObservers(configWith('1%'), settled);
  expect(settled).toEqual([]);
  await features.loaded();
  expect(settled).toHaveLength(1);
  expect((await metrics.expose()).body).toContain('textgate_usage_samples_total{result="compared"} 0\n');
});

test('a feature is made once in a process, and asked for each config that has it', async () => {
  const made: string[] = [];
  const plug = () => {
    made.push('made');
    return ({ metering }: Config) => {
      made.push(String(metering.sample));
      return () => {};
    };
  };
  const feature: Feature = ({ metering }) => (metering.sample > 0 ? Promise.resolve({ plug }) : null);
  const { features } = open([feature]);
  const lists = ['1%', '0%', '2%'].map((sample) => {
    const settled: SettledObserver[] = [];
    features.addObservers(configWith(sample), settled);
    return settled;
  });
  await features.loaded();
  expect(made).toEqual(['made', '0.01', '0.02']);
  expect(lists.map(({ length }) => length)).toEqual([1, 0, 1]);
});

test('a feature that can not be loaded is logged, keeps no other one from its work, and is loaded by a later config', async () => {
  const [observer, late] = [() => {}, () => {}];
  let loads = 0;
  const { features, faults } = open([
    async () => {
      if (++loads === 1) throw new Error('no such file');
      return { plug: () => () => late };
    },
    async () => ({ plug: () => () => observer }),
  ]);
  const [settled, later]: [SettledObserver[], SettledObserver[]] = [[], []];
  features.addObservers(configWith('1%'), settled);
  await features.loaded();
  expect(settled).toEqual([observer]);
  features.addObservers(configWith('1%'), later);
  await features.loaded();
  expect(later).toEqual([late, observer]);
  expect(faults).toEqual([
    'a feature could not be loaded: requests are served without it: Error: no such file',
  ]);
});
