import { describe, expect, test } from 'vitest';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { groupsOf } from '../../src/config/schema/groups-schema.ts';
import { showConfig } from '../../src/config/show-config.ts';
import { declaredKeysOf } from '../../src/config/declared-keys.ts';
import { loadYaml } from '../support/config-file.ts';

const key = 'sk-Yq3vT9LmW0zKc7Rb1';

function read(sections: object) {
  return readConfig({ upstreams: { demo: { url: 'demo:' } }, models: { from: 'demo' }, ...sections });
}
function problemsOf(sections: object): readonly string[] {
  const found = read(sections);
  return found.kind === 'problems' ? found.problems.map(writeProblem) : [];
}
function configOf(sections: object) {
  const found = read(sections);
  if (found.kind === 'problems') throw new Error(found.problems.map(writeProblem).join('\n'));
  return found.config;
}

const budget = { amount: '500', per: 'month', timeZone: 'Asia/Kathmandu', warnAt: ['0.8', '.5'] };

describe('groups', () => {
  test('are read with their limits, of which each may be missing', () => {
    const { groups } = configOf({
      groups: { research: { concurrency: '8', budget }, 'Team.2_b-c': {} },
    });
    expect([...groupsOf(groups).values()]).toEqual([
      {
        id: 'group:research',
        name: 'research',
        concurrency: 8,
        budget: {
          amountNanos: 500e9,
          per: 'month',
          timeZone: 'Asia/Kathmandu',
          warnAt: [500, 800],
          raise: null,
        },
      },
      { id: 'group:Team.2_b-c', name: 'Team.2_b-c', concurrency: null, budget: null },
    ]);
    expect(groupsOf(configOf({}).groups).size).toBe(0);
  });

  test.each([
    ['20/month', { amountNanos: 20e9, per: 'month' }],
    [' 1.50 / day ', { amountNanos: 1.5e9, per: 'day' }],
  ])('take a budget as a text, as the command line does: %j', (text, expected) => {
    const { groups, keys } = configOf({
      groups: { research: { budget: text } },
      keys: { bob: { key, budget: text } },
    });
    const whole = { ...expected, timeZone: 'UTC', warnAt: [], raise: null };
    expect(groupsOf(groups).get('research')?.budget).toEqual(whole);
    expect(declaredKeysOf(keys)[0]?.budget).toEqual(whole);
  });

  test.each([
    ['20', ': expected an amount and a period, such as 20/day, 20/week or 20/month'],
    ['20/month/day', ': expected an amount and a period, such as 20/day, 20/week or 20/month'],
    [20, ': expected an amount and a period, such as 20/day, 20/week or 20/month'],
    ['20/moth', '.per: expected "day" or "week" or "month"'],
    [
      '-1/day',
      '.amount: expected USD as a decimal number with at most 9 digits after the point, such as "0.15"',
    ],
    [{ amount: '20' }, '.per: expected "day" or "week" or "month"'],
    [{ amount: '20', per: 'month', timezone: 'UTC' }, ".timezone: unknown key; did you mean 'timeZone'?"],
  ])('do not take a budget of %j', (given, problem) => {
    expect(problemsOf({ groups: { research: { budget: given } } })).toEqual([
      `groups.research.budget${problem}`,
    ]);
  });

  test('are shown as they are read', () => {
    const config = configOf({
      groups: { research: { concurrency: 8, budget } },
      keys: { bob: { key, group: 'research' } },
    });
    const shown = loadYaml(showConfig(config));
    expect(shown.groups).toEqual(config.groups);
    expect(shown.keys['bob']?.group).toBe('research');
  });

  const names =
    'expected letters, digits and . _ - in the name of a group, and a letter or a digit at its beginning';
  test.each([
    ['a blank in it', 'a b', names],
    ['nothing in it', '', names],
    ['a sign at its beginning', '-a', names],
    ['a letter of another script', 'größe', names],
    ['65 characters', 'x'.repeat(65), 'expected 64 characters or less'],
    ['the word for no group', 'none', "'none' means no group: choose another name"],
  ])('are refused for a name with %s', (_what, name, problem) => {
    expect(problemsOf({ groups: { [name]: {} } })).toEqual([expect.stringContaining(problem)]);
  });

  test.each([
    ['no concurrency at all', { concurrency: 0 }, 'concurrency'],
    ['a concurrency that is not whole', { concurrency: 1.5 }, 'concurrency'],
    ['a budget without a period', { budget: { amount: '1' } }, 'budget.per'],
    [
      'a budget in a zone that is none',
      { budget: { amount: '1', per: 'day', timeZone: 'Mars/Base' } },
      'budget.timeZone',
    ],
    ['a budget below 0', { budget: { amount: '-1', per: 'day' } }, 'budget.amount'],
    ['a limit that only keys have', { requestsPerMinute: 5 }, 'requestsPerMinute'],
  ])('are refused with %s', (_what, group, place) => {
    expect(problemsOf({ groups: { research: group } })).toEqual([
      expect.stringContaining(`groups.research.${place}: `),
    ]);
  });

  test('are refused when there are too many of them', () => {
    const many = Array.from({ length: 1_001 }, (_, number) => [`g${number}`, {}] as const);
    expect(problemsOf({ groups: Object.fromEntries(many) })).toEqual([
      'groups: expected 1000 groups or less',
    ]);
    expect(problemsOf({ groups: Object.fromEntries(many.slice(1)) })).toEqual([]);
  });
});

describe('a declared key', () => {
  test.each([
    ['resembles one', { research: {} }, "no group has this name; did you mean 'research'?"],
    ['resembles none', { a: {}, b: {} }, 'no group has this name; known names: a, b'],
    ['can be none', undefined, 'no group has this name: `groups` has none'],
  ])('is refused for a group that the config does not have and that %s', (_what, groups, problem) => {
    const keys = { bob: { key, group: 'reserch' } };
    expect(problemsOf({ keys, ...(groups === undefined ? {} : { groups }) })).toEqual([
      `keys.bob.group: ${problem}`,
    ]);
  });

  test.each([null, 7, [], 'x', { bob: null }, { bob: { key, group: 7 } }])(
    'of a wrong type is refused without a crash: %j',
    (keys) => {
      expect(problemsOf({ keys, groups: null })).not.toEqual([]);
      expect(problemsOf({ keys, groups: {} })).not.toEqual([]);
    },
  );
});
