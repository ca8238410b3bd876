import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { configSchema } from '../../src/config/schema/json-schema.ts';

const routes = [1, 2].map(() => ({ upstream: 'local', model: 'tiny' }));

/** A config with one share in it, at each place that takes one. */
const places: readonly (readonly [path: string, config: (share: unknown) => object])[] = [
  ['models.small.hedge.budget', (budget) => withModel({ hedge: { budget } })],
  ['models.small.shadow.share', (share) => withModel({ shadow: { route: routes[0], share, free: true } })],
  ['metering.sample', (sample) => ({ ...withModel({}), metering: { sample } })],
];

function withModel(settings: object): object {
  return {
    upstreams: { local: { url: 'http://127.0.0.1:8000/v1' } },
    models: { small: { routes, free: true, ...settings } },
  };
}

function shareIn(config: object, path: string): unknown {
  const read = readConfig(config);
  if (read.kind === 'problems') return read.problems.map(writeProblem).join('\n');
  let value: unknown = read.config;
  for (const key of path.split('.')) value = (value as Record<string, unknown>)[key];
  return value;
}

/** Whether an editor with the JSON Schema of the config accepts it. */
const accepted = z.fromJSONSchema(configSchema());

describe.each(places)('%s', (path, configWith) => {
  test.each([
    ['5%', 0.05],
    ['0.07%', 0.0007],
    ['100%', 1],
    ['0.05', 0.05],
    [0.05, 0.05],
    [1, 1],
    [1e-7, 1e-7],
  ])('takes %o', (given, share) => {
    expect(shareIn(configWith(given), path)).toBe(share);
    expect(accepted.safeParse(configWith(given)).success).toBe(true);
  });

  test.each([
    [5, 'neither a percentage nor a number from 0 to 1: write 5% or 0.05'],
    ['12.5', 'neither a percentage nor a number from 0 to 1: write 12.5% or 0.125'],
    ['101%', 'expected a percentage from 0% to 100%, such as 5%, or the same as a number from 0 to 1'],
    [-0.1, 'expected a percentage from 0% to 100%, such as 5%, or the same as a number from 0 to 1'],
    ['many', 'expected a percentage from 0% to 100%, such as 5%, or the same as a number from 0 to 1'],
    [true, 'expected a percentage such as 5%, not true or false'],
  ])('says what to write instead of %o', (given, problem) => {
    expect(shareIn(configWith(given), path)).toContain(`${path}: ${problem}`);
  });

  test('refuses in an editor what it refuses at a start', () => {
    for (const given of [5, '5', '101%', -0.1, 'many', true])
      expect([given, accepted.safeParse(configWith(given)).success]).toEqual([given, false]);
  });
});
