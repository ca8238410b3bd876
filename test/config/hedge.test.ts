import { describe, expect, test } from 'vitest';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { hedge, hedgePolicyOf } from '../../src/config/schema/hedge-schema.ts';

const upstreams = { local: { url: 'http://127.0.0.1:8000/v1' } };
const route = { upstream: 'local', model: 'tiny' };

function problemsOf(settings: object, routes: readonly object[] = [route, route]): readonly string[] {
  const read = readConfig({ upstreams, models: { small: { routes, free: true, ...settings } } });
  return read.kind === 'problems' ? read.problems.map(writeProblem) : [];
}

describe('the setting hedge', () => {
  test.each([
    [{}, { after: { kind: 'quantile', share: 0.95 }, budget: 0.05 }],
    [{ after: 'p50' }, { after: { kind: 'quantile', share: 0.5 }, budget: 0.05 }],
    [
      { after: '2s', budget: '0.5%' },
      { after: { kind: 'time', ms: 2_000 }, budget: 0.005 },
    ],
    [
      { after: '1.5s', budget: '100%' },
      { after: { kind: 'time', ms: 1_500 }, budget: 1 },
    ],
  ])('%o is read', (given, policy) => {
    expect(problemsOf({ hedge: given })).toEqual([]);
    expect(hedgePolicyOf(hedge.parse(given))).toEqual(policy);
  });

  test.each([
    [
      { after: 'p40' },
      'models.small.hedge.after: expected p50 to p99, such as p95, or a duration such as 2s',
    ],
    [{ after: '0s' }, 'models.small.hedge.after: expected a duration above 0 and of at most an hour'],
    [{ after: '61m' }, 'models.small.hedge.after: expected a duration above 0 and of at most an hour'],
    [
      { budget: '0%' },
      'models.small.hedge.budget: expected more than 0%: leave hedge out for no second requests',
    ],
  ])('%o is refused', (given, problem) => {
    expect(problemsOf({ hedge: given })).toEqual([problem]);
  });

  test('needs a second route', () => {
    expect(problemsOf({ hedge: {} }, [route])).toEqual([
      'models.small.hedge: a second request needs a second route: add one, or leave hedge out',
    ]);
  });
});

test('a model that thinks, retryWithin and timeouts.firstText are read', () => {
  const read = readConfig({
    upstreams: { local: { ...upstreams.local, timeouts: { firstText: '5s' } } },
    models: { small: { routes: [{ ...route, retryWithin: '3s' }], free: true, thinks: true } },
  });
  expect(read).toMatchObject({
    config: {
      upstreams: { local: { timeouts: { firstText: 5_000 } } },
      models: { small: { thinks: true, routes: [{ retryWithin: 3_000 }] } },
    },
  });
  const discovered = readConfig({ upstreams, models: { from: 'local', thinks: true } });
  expect(discovered).toMatchObject({ config: { models: { from: 'local', thinks: true } } });
  expect(problemsOf({ thinks: false })).toEqual([
    'models.small.thinks: expected true: leave the key out otherwise',
  ]);
});
