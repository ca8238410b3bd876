import { expect, test } from 'vitest';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';

const route = { upstream: 'local', model: 'big' };
const price = { input: '0.10', output: '0.40' };

function read(shadow: object) {
  return readConfig({
    upstreams: { local: { url: 'http://127.0.0.1:8000/v1' } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true, shadow } },
  });
}

test('a shadow route needs a share and a price with a budget, or is free', () => {
  for (const shadow of [
    { route, share: 0.05, price, budgetPerDay: '10.00' },
    { route, share: '0.05', free: true, maxInFlight: 64 },
  ])
    expect(read(shadow)).toMatchObject({
      kind: 'config',
      config: { models: { small: { shadow: { share: 0.05, maxInFlight: expect.any(Number) as number } } } },
    });
});

test.for([
  [{ route, free: true }, 'models.small.shadow.share: missing'],
  [{ route, share: 1.5, free: true }, 'models.small.shadow.share'],
  [{ route, share: 1, free: true, maxInFlight: 65 }, 'models.small.shadow.maxInFlight'],
  [{ route, share: 1 }, 'models.small.shadow: expected either a price or free: true'],
  [{ route, share: 1, free: true, price, budgetPerDay: '1' }, 'expected either a price or free: true'],
  [{ route, share: 1, price }, 'budgetPerDay: expected an amount of USD, because the route has a price'],
  [{ route, share: 1, free: true, budgetPerDay: '1' }, 'budgetPerDay: a free route needs no budget'],
  [
    { route: { upstream: 'locl', model: 'big' }, share: 1, free: true },
    "models.small.shadow.route.upstream: no upstream has this name; did you mean 'local'?",
  ],
] as const)('a problem names its place and what is expected: %o', ([shadow, words]) => {
  const found = read(shadow);
  const problems = found.kind === 'problems' ? found.problems.map(writeProblem) : [];
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(words);
});
