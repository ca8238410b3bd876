import { describe, expect, test } from 'vitest';
import {
  countOption,
  describeScript,
  factor,
  onOff,
  oneOf,
  parseScript,
  seedOption,
} from './script-options.ts';

const script = {
  name: 'chaos all',
  options: {
    kills: countOption('kills', 100),
    times: countOption('how often', null),
    scale: factor('how much', 1),
    engine: oneOf('the engine', ['sqlite', 'postgres']),
    pictures: onOff('draws'),
    seed: seedOption(null),
  },
  parts: ['limits', 'kills'],
};

const initial = {
  kills: 100,
  times: null,
  scale: 1,
  engine: 'sqlite',
  pictures: false,
  seed: null,
  parts: [],
};

describe('the options of a script', () => {
  test('are what is given, and have their initial values otherwise', () => {
    expect(parseScript(script, [])).toEqual(initial);
    const given = [
      '--kills',
      '3',
      '--scale',
      '0.5',
      '--engine=postgres',
      '--pictures',
      '--seed',
      '0',
      'limits',
    ];
    expect(parseScript(script, given)).toEqual({
      ...initial,
      kills: 3,
      scale: 0.5,
      engine: 'postgres',
      pictures: true,
      seed: 0,
      parts: ['limits'],
    });
  });

  test.each<[readonly string[], string]>([
    [['--kils', '3'], "Unknown option '--kils'"],
    [['--kills', 'three'], '--kills takes a whole number from 1 on'],
    [['--kills', '0'], '--kills takes a whole number from 1 on'],
    [['--kills', ''], '--kills takes a whole number from 1 on'],
    [['--seed', '1.5'], '--seed takes a whole number from 0 on'],
    [['--scale', '0'], '--scale takes a number above 0'],
    [['--engine', 'mysql'], '--engine is one of sqlite, postgres'],
    [['lines'], "'lines' is none of limits, kills"],
  ])('are refused if they are wrong: %j', (args, reason) => {
    expect(() => parseScript(script, args)).toThrow(reason);
  });

  test('have no part where a script has none, so that a number alone is not taken for nothing', () => {
    expect(() => parseScript({ ...script, parts: [] }, ['30'])).toThrow("Unexpected argument '30'");
  });

  test('are listed with their initial values', () => {
    expect(parseScript(script, ['--help'])).toBeNull();
    const text = describeScript(script);
    expect(text).toMatch(
      /^npm run chaos all -- \[options\] \[part …\]\n {2}--kills N +kills \(default 100\)\n/,
    );
    expect(text).toMatch(/\n {2}--engine sqlite\|postgres +the engine \(default sqlite\)\n/);
    expect(text).toMatch(/\n {2}--times N +how often\n/);
  });
});
