import { describe, expect, test } from 'vitest';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { isDiscovered } from '../../src/config/schema/schema.ts';

const route = { upstream: 'local', model: 'tiny' };
const upstreams = { local: { url: 'http://127.0.0.1:8000/v1' } };
const good = { upstreams, models: { small: { routes: [route], free: true } } };

function problemsOf(input: unknown): readonly string[] {
  const read = readConfig(input);
  return read.kind === 'problems' ? read.problems.map(writeProblem) : [];
}
function configOf(input: unknown) {
  const read = readConfig(input);
  if (read.kind === 'problems') throw new Error(read.problems.map(writeProblem).join('\n'));
  return read.config;
}

describe('a config', () => {
  test('needs only one upstream and one model: all other settings have defaults', () => {
    expect(configOf(good)).toMatchObject({
      server: { host: '127.0.0.1', port: 8080, maxBody: 1_048_576, drain: 25_000 },
      admin: { host: '127.0.0.1', port: 8081 },
      storage: { url: 'sqlite:data/textgate.db', durability: 'full' },
      limits: { concurrency: 2, requestsPerMinute: 60 },
      upstreams: {
        local: {
          url: new URL('http://127.0.0.1:8000/v1'),
          timeouts: { connect: 5_000, firstByte: 120_000, idle: 60_000, total: 600_000 },
        },
      },
      models: { small: { routes: [route] } },
    });
  });

  test('is read with its own settings, in milliseconds and bytes', () => {
    const read = configOf({
      ...good,
      server: { host: '0.0.0.0', port: 0, maxBody: '64KiB', drain: '1.5s' },
      limits: { concurrency: 1, requestsPerMinute: 1 },
      upstreams: { local: { url: 'demo:', apiKey: 'k', timeouts: { idle: '250ms' } } },
    });
    expect(read).toMatchObject({
      server: { host: '0.0.0.0', port: 0, maxBody: 65_536, drain: 1_500 },
      limits: { concurrency: 1, requestsPerMinute: 1 },
      upstreams: { local: { apiKey: 'k', timeouts: { connect: 5_000, idle: 250 } } },
    });
  });

  test('has default prices: cached input costs as much as other input, cache writes a quarter more', () => {
    const priced = (price: object) => configOf({ ...good, models: { small: { routes: [route], price } } });
    const base = { input: '3', output: '15' };
    const line = { input: 3e9, cachedInput: 3e9, cacheWrite: 3.75e9, output: 15e9, request: 0 };
    expect(priced(base)).toMatchObject({ models: { small: { price: { ...line, above: null } } } });
    const above = { inputTokens: 200_000, input: '6', cachedInput: '0.6', cacheWrite: '7', output: '22.50' };
    const tiered = {
      ...line,
      cacheWrite: 4e9,
      above: { inputTokens: 200_000, input: 6e9, cachedInput: 0.6e9, cacheWrite: 7e9, output: 22.5e9 },
    };
    const full = priced({ ...base, cacheWrite: '4', above });
    expect(full).toMatchObject({ models: { small: { price: tiered } } });
    const least = priced({ input: '0.000000001', output: '0' });
    expect(least).toMatchObject({ models: { small: { price: { cacheWrite: 2 } } } });
  });

  test('may discover its models from an upstream', () => {
    const { models } = configOf({ upstreams, models: { from: 'local' } });
    expect(isDiscovered(models)).toBe(true);
    expect(models).toMatchObject({ from: 'local', allow: ['*'] });
    expect(isDiscovered(configOf(good).models)).toBe(false);
  });

  test('may offer a model with the name "from"', () => {
    const { models } = configOf({ upstreams, models: { from: { routes: [route], free: true } } });
    expect(isDiscovered(models)).toBe(false);
  });
});

describe('an invalid config', () => {
  test('is refused with all problems at once, each with its path', () => {
    const problems = problemsOf({
      server: { port: 70_000, maxBody: 'big', prot: 1 },
      limits: { concurrency: 0, requestsPerMinute: 'many' },
      upstreams: { local: { url: 'ftp://x', timeouts: { idle: 'soon' } } },
      models: { small: { routes: [], free: true } },
    });
    const paths = problems.map((problem) => problem.slice(0, problem.indexOf(':')));
    expect(paths.toSorted()).toEqual([
      'limits.concurrency',
      'limits.requestsPerMinute',
      'models.small.routes',
      'server.maxBody',
      'server.port',
      'server.prot',
      'upstreams.local.timeouts.idle',
      'upstreams.local.url',
    ]);
    for (const problem of problems) expect(problem).toMatch(/: \S+ \S/);
  });

  test.each<[string, object, string]>([
    ['at the top', { sever: {} }, "sever: unknown key; did you mean 'server'?"],
    ['in a section', { server: { maxbody: '1B' } }, "server.maxbody: unknown key; did you mean 'maxBody'?"],
    [
      'inside an upstream',
      { upstreams: { local: { ...upstreams.local, apikey: 'k' } } },
      "upstreams.local.apikey: unknown key; did you mean 'apiKey'?",
    ],
    [
      'deep inside an upstream',
      { upstreams: { local: { ...upstreams.local, timeouts: { firstbite: '1s' } } } },
      "upstreams.local.timeouts.firstbite: unknown key; did you mean 'firstByte'?",
    ],
    [
      'in a route',
      { models: { small: { routes: [{ ...route, modell: 'x' }], free: true } } },
      "models.small.routes[0].modell: unknown key; did you mean 'model'?",
    ],
    [
      'beside a discovering from',
      { models: { from: 'local', form: 'x' } },
      "models.form: unknown key; did you mean 'from'?",
    ],
  ])('is refused for an unknown key %s, with the nearest known key', (_name, change, problem) => {
    expect(problemsOf({ ...good, ...change })).toEqual([problem]);
  });

  test('is refused with the known keys when an unknown key resembles none', () => {
    const [problem, ...more] = problemsOf({ ...good, limits: { zzzzzzzz: 1 } });
    expect(more).toEqual([]);
    expect(problem).toMatch(/^limits\.zzzzzzzz: unknown key; known names: .*\bconcurrency\b/);
    expect(problem).toContain('requestsPerMinute');
  });

  test.each<[string, object, string]>([
    [
      'a route',
      { models: { small: { routes: [route, { upstream: 'lokal', model: 'x' }], free: true } } },
      "models.small.routes[1].upstream: no upstream has this name; did you mean 'local'?",
    ],
    [
      'discovery',
      { models: { from: 'elsewhere' } },
      'models.from: no upstream has this name; known names: local',
    ],
    [
      'a name from an object’s prototype',
      { models: { from: 'constructor' } },
      'models.from: no upstream has this name; known names: local',
    ],
  ])('is refused for an unknown upstream in %s', (_name, change, problem) => {
    expect(problemsOf({ ...good, ...change })).toEqual([problem]);
  });

  test.each([null, undefined, 'x', 7, [], { models: null }])('is refused without a crash: %j', (input) => {
    expect(problemsOf(input).length).toBeGreaterThan(0);
  });

  test.each<[string, object]>([
    ['upstreams', { upstreams: undefined }],
    ['models', { models: undefined }],
    ['upstreams.local.url', { upstreams: { local: {} } }],
    ['upstreams.local.apiKey', { upstreams: { local: { ...upstreams.local, apiKey: '' } } }],
    [
      'models.small.routes[0].model',
      { models: { small: { routes: [{ ...route, model: '' }], free: true } } },
    ],
    ['server.port', { server: { port: 1.5 } }],
    ['server.port', { server: { port: Number.NaN } }],
    ['storage.url', { storage: { url: 'sqlite:' } }],
    ['storage.durability', { storage: { durability: 'some' } }],
  ])('is refused with the path of its problem: %s', (path, change) => {
    const problems = problemsOf({ ...good, ...change });
    expect(problems.map((problem) => problem.split(': ')[0])).toEqual([path]);
  });

  test('is refused without quoting a secret', () => {
    const problems = problemsOf({ ...good, admin: { token: 'hunter2' } });
    expect(problems).toEqual([expect.stringMatching(/^admin\.token: /)]);
    expect(problems.join()).not.toContain('hunter2');
  });

  test.each([' '.repeat(20), 'two-words of-a-token', `${'x'.repeat(15)}   `])(
    'is refused for an admin token with blanks in it, or too short without those around it: %j',
    (token) => {
      expect(problemsOf({ ...good, admin: { token } })).toEqual([expect.stringMatching(/^admin\.token: /)]);
    },
  );
});
