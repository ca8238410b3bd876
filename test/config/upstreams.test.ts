import { describe, expect, test } from 'vitest';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { limiterSettingsOf } from '../../src/config/schema/limiter-schema.ts';

const small = { routes: [{ upstream: 'local', model: 'm' }], free: true };

function problemsWith(upstream: object, extra: object = {}): readonly string[] {
  const local = { url: 'http://127.0.0.1:8000/v1', ...upstream };
  const read = readConfig({ upstreams: { local }, models: { small }, ...extra });
  return read.kind === 'problems' ? read.problems.map(writeProblem) : [];
}

describe('the address of an upstream', () => {
  test.each([
    'http://169.254.169.254/latest',
    'http://[fe80::1]/v1',
    'http://[::ffff:169.254.169.254]/v1',
    'http://[64:ff9b::169.254.169.254]/v1',
    'http://[::169.254.169.254]/v1',
    'http://0xa9fea9fe/v1',
    'http://2852039166/v1',
    'http://metadata.google.internal/v1',
    'http://METADATA.google.internal./v1',
  ])('%s, where clouds serve a machine’s credentials, is refused unless it is allowed', (url) => {
    expect(problemsWith({ url })).toEqual([
      expect.stringMatching(/^upstreams\.local\.url: a link-local address/),
    ]);
    expect(problemsWith({ url, allowLinkLocal: true })).toEqual([]);
  });

  test.each([
    'http://127.0.0.1/v1',
    'http://[::1]/v1',
    'http://10.0.0.1/v1',
    'https://169.254.example.com/v1',
  ])('%s is accepted', (url) => {
    expect(problemsWith({ url })).toEqual([]);
  });

  test.each([
    'http://127.0.0.1:8000',
    'https://api.deepseek.com',
    'https://mine.services.ai.azure.com/models',
    'https://host/openai/deployments/gpt/',
    'http://[::1]:8000/v1',
    ' http://127.0.0.1:8000/v1\n',
    'HTTP://LOCALHOST/v1',
    'demo:',
  ])('may be %j', (url) => {
    expect(problemsWith({ url })).toEqual([]);
  });

  test.each([
    ['/chat/completions', 'https://host/v1/chat/completions'],
    ['/chat/completions', 'https://host/openai/deployments/gpt/chat/completions?api-version=1'],
    ['/completions', 'https://host/v1/completions'],
    ['/responses', 'https://host/v1/responses/'],
    ['/messages', 'https://host/v1/messages'],
    ['/embeddings', 'https://host/v1/embeddings'],
    ['/models', 'https://host/v1beta/models'],
    ['/models/<model>:generateContent', 'https://host/v1beta/models/gemini:generateContent'],
    ['/models/<model>:streamGenerateContent', 'https://host/v1/models/gemini:streamGenerateContent?alt=sse'],
  ])('is refused with the endpoint %s at its end', (endpoint, url) => {
    expect(problemsWith({ url })).toEqual([
      `upstreams.local.url: expected the base address, without an endpoint: leave out ${endpoint}`,
    ]);
  });

  test('may have a query, which is sent, but no password and no fragment', () => {
    expect(problemsWith({ url: 'https://host/openai?api-version=1' })).toEqual([]);
    expect(problemsWith({ url: 'https://me:secret@host/v1' })).toHaveLength(1);
    expect(problemsWith({ url: 'https://host/v1#x' })).toHaveLength(1);
  });
});

test('the built-in demo has no dialect but chat', () => {
  expect(problemsWith({ url: 'demo:', dialects: ['chat'] })).toEqual([]);
  for (const dialects of [['responses'], ['chat', 'responses'], ['gemini']])
    expect(problemsWith({ url: 'demo:', dialects })).toEqual([
      'upstreams.local.dialects: the built-in demo has Chat Completions only: leave it out',
    ]);
});

describe('the headers of an upstream', () => {
  test.each([
    [{ 'x y': '1' }, 'a header name'],
    [{ host: 'elsewhere' }, 'the gateway sets this header itself'],
    [{ accept: '*/*' }, 'the gateway sets this header itself'],
    [{ 'Content-Length': '1' }, 'the gateway sets this header itself'],
    [{ 'x-org': 'a\r\nb: c' }, 'printable ASCII'],
  ])('can’t be %j', (headers, problem) => {
    expect(problemsWith({ headers }).join()).toContain(problem);
  });

  test('may have other names', () => {
    expect(problemsWith({ headers: { 'HTTP-Referer': 'https://mine' }, authHeader: 'api-key' })).toEqual([]);
  });
});

describe('a passthrough path', () => {
  test.each([
    '/v1/chat/completions',
    '/v1/responses',
    '/v1/models',
    '/v1/models/x',
    '/v1/key',
    '/v1/key/requests',
  ])('can’t be %s, a path of the gateway itself', (path) => {
    const problems = problemsWith({}, { passthrough: [{ path, upstream: 'local' }] });
    expect(problems).toEqual([expect.stringContaining('passthrough[0].path')]);
  });

  test.each(['tokenize', '/tokenize/', '/a*', '/:id', '/a/../b?x', '/..', '/.', '/a/..', '/a/./b', ''])(
    'can’t be %j',
    (path) => {
      expect(problemsWith({}, { passthrough: [{ path, upstream: 'local' }] })).toHaveLength(1);
    },
  );

  test('is listed once, and does not lead to the demo', () => {
    const twice = [1, 2].map(() => ({ path: '/tokenize', upstream: 'local' }));
    expect(problemsWith({}, { passthrough: twice })).toEqual(['passthrough: expected each path only once']);
    expect(problemsWith({ url: 'demo:' }, { passthrough: twice.slice(1) })).toEqual([
      'passthrough[0].upstream: the built-in demo has no passthrough paths',
    ]);
  });

  test('has a price, or is free, or neither, but not both', () => {
    const path = { path: '/tokenize', upstream: 'local' };
    const price = { request: '0.001' };
    for (const extra of [{}, { price }, { free: true }])
      expect(problemsWith({}, { passthrough: [{ ...path, ...extra }] })).toEqual([]);
    expect(problemsWith({}, { passthrough: [{ ...path, price, free: true }] })).toEqual([
      'passthrough[0]: expected either a price or free: true',
    ]);
    expect(problemsWith({}, { passthrough: [{ ...path, price: { input: '1' } }] })).not.toEqual([]);
  });

  test('leads to a configured upstream', () => {
    expect(problemsWith({}, { passthrough: [{ path: '/tokenize', upstream: 'locl' }] })).toEqual([
      "passthrough[0].upstream: no upstream has this name; did you mean 'local'?",
    ]);
  });
});

describe('the times of an upstream', () => {
  test.each([
    [{ timeouts: { idle: '0s' } }, 'upstreams.local.timeouts.idle: expected more than 0'],
    [{ hiddenPrompt: -1 }, 'upstreams.local.hiddenPrompt: expected 0 or more'],
    [{ hiddenPrompt: 131_073 }, 'upstreams.local.hiddenPrompt: expected 131072 or less'],
    [
      { hiddenPrompt: 'none' },
      'upstreams.local.hiddenPrompt: expected a number, not a text: write for example 0',
    ],
    [{ hiddenPrompt: 1.5 }, 'upstreams.local.hiddenPrompt: expected a whole number'],
    [{ probe: { interval: '0s' } }, 'upstreams.local.probe.interval: expected 1s or more'],
  ])('can’t be %j', (upstream, problem) => {
    expect(problemsWith(upstream)).toEqual([problem]);
  });
});

test('an upstream’s key is read without the line feed at the end of a mounted secret, and may hold no other', () => {
  const read = readConfig({
    upstreams: { local: { url: 'http://127.0.0.1/v1', apiKey: 'sk-abc\n' } },
    models: { small },
  });
  expect(read.kind === 'config' && read.config.upstreams['local']?.apiKey).toBe('sk-abc');
  expect(problemsWith({ apiKey: 'sk-\nabc' })).toHaveLength(1);
});

describe('the two listeners', () => {
  const problemsOfPorts = (server: object, admin: object): readonly string[] =>
    problemsWith({}, { server, admin });

  test.each([
    [{ port: 9000 }, { port: 9000 }],
    [{ port: 9000 }, { port: '9000' }],
    [
      { port: 9000, host: '::' },
      { port: 9000, host: '10.0.0.1' },
    ],
    [{ port: 9000, host: 'localhost' }, { port: 9000 }],
    [{ port: 8081 }, {}],
    [{}, { port: 8080 }],
  ])('can’t have the addresses %j and %j', (server, admin) => {
    expect(problemsOfPorts(server, admin)).toEqual([expect.stringMatching(/^admin\.port: the same port/)]);
  });

  test.each([
    [{ port: 0 }, { port: 0 }],
    [{ port: 9000, host: '10.0.0.1' }, { port: 9000 }],
    [{ port: 9000 }, { port: 9001 }],
    [
      { port: 9000, host: '127.0.0.1' },
      { port: 9000, host: '::1' },
    ],
  ])('may have the addresses %j and %j', (server, admin) => {
    expect(problemsOfPorts(server, admin)).toEqual([]);
  });

  test.each(['0.0.0.0', '::', '::1', 'localhost', 'fe80::1%eth0', 'gateway.internal', 'my_host'])(
    'may have the host %s',
    (host) => {
      expect(problemsOfPorts({ host }, {})).toEqual([]);
    },
  );

  test.each([
    '',
    '*',
    ':8080',
    '[::1]',
    '[::]:80',
    '0.0.0.0:80',
    'http://x',
    'unix:/run/x',
    '/run/x',
    'a b',
    'a/b',
  ])('can’t have the host %j', (host) => {
    expect(problemsOfPorts({ host }, {})).toHaveLength(1);
  });
});

describe('the admission queue of an upstream', () => {
  test.each([
    ['queue', 5],
    ['queueWait', '5s'],
  ])('needs a limit: %s alone is a mistake', (name, value) => {
    expect(problemsWith({ [name]: value, learnLimits: false })).toEqual([
      expect.stringMatching(
        new RegExp(`^upstreams\\.local\\.${name}: expected only beside a limit, .*maxInFlight`),
      ),
    ]);
    for (const limit of [
      { maxInFlight: 1 },
      { requestsPerMinute: 1 },
      { tokensPerMinute: 1 },
      { learnLimits: true },
    ])
      expect(problemsWith({ [name]: value, ...limit })).toEqual([]);
  });

  test.each([
    ['queue', 1_001],
    ['queue', -1],
    ['queueWait', '-1s'],
    ['maxInFlight', 0],
    ['tokensPerMinute', '1.5'],
  ])('has no %s of %s', (name, value) =>
    expect(problemsWith({ maxInFlight: 1, [name]: value })).toHaveLength(1),
  );

  test('has 100 places and 30 s unless the config says otherwise; upstreams without limits have none', () => {
    const all = {
      a: { maxInFlight: 4 },
      b: { learnLimits: true, queue: 0, queueWait: 500 },
      c: { learnLimits: false },
    };
    expect(Object.fromEntries(limiterSettingsOf(all))).toEqual({
      a: { ...unset, maxInFlight: 4, queue: 100, queueWaitMs: 30_000, models: new Map() },
      b: { ...unset, learnLimits: true, queue: 0, queueWaitMs: 500, models: new Map() },
    });
  });
});

describe('limits of a model at an upstream', () => {
  test.each([
    ['maxInFlight', 0],
    ['maxInFlight', 'four'],
    ['tokensPerMinute', '1.5'],
    ['requestsPerMinute', -1],
    ['learnLimits', 'yes'],
    ['queue', 1_001],
    ['queueWait', '-1s'],
  ])('have no %s of %s, as those of the upstream', (name, value) => {
    const limits = { ...(name === 'maxInFlight' ? {} : { maxInFlight: 1 }), [name]: value };
    const problem = problemsWith({ models: { m: limits } });
    expect(problem).toEqual(
      problemsWith(limits).map((text) => text.replace('upstreams.local.', 'upstreams.local.models.m.')),
    );
    expect(problem).toHaveLength(1);
  });

  test('are those that an upstream has: another name is refused with the nearest, and none at all is a mistake', () => {
    expect(problemsWith({ models: { m: { maxInflight: 1 } } })).toEqual([
      "upstreams.local.models.m.maxInflight: unknown key; did you mean 'maxInFlight'?",
    ]);
    expect(problemsWith({ models: { m: { maxInFlight: 1, models: {} } } })).toHaveLength(1);
    for (const limits of [{}, { learnLimits: false }, { queue: 4 }])
      expect(problemsWith({ models: { m: limits } })).toEqual([
        'upstreams.local.models.m: expected a limit at least: set maxInFlight, requestsPerMinute, tokensPerMinute or learnLimits, or leave it out',
      ]);
  });

  test('belong to a model that a route has there, a shadow route, too; else the nearest is named', () => {
    const routes = [
      { upstream: 'local', model: 'mistral-small' },
      { upstream: 'other', model: 'far' },
    ];
    const shadow = { route: { upstream: 'local', model: 'copied' }, share: 0.1, free: true };
    const models = { one: { routes, free: true, shadow } };
    const namedBy = (names: readonly string[]): readonly string[] =>
      problemsWith(
        {},
        {
          upstreams: {
            local: {
              url: 'http://127.0.0.1:8000/v1',
              models: Object.fromEntries(names.map((name) => [name, { maxInFlight: 1 }])),
            },
            other: { url: 'http://127.0.0.1:8001/v1' },
            spare: { url: 'http://127.0.0.1:8002/v1' },
          },
          models,
        },
      );
    expect(namedBy(['mistral-small', 'copied'])).toEqual([]);
    expect(namedBy(['mistral-smal'])).toEqual([
      "upstreams.local.models.mistral-smal: no route has this model here; did you mean 'mistral-small'?",
    ]);
    // The name that clients use is not the one there, nor is that at another upstream.
    expect(namedBy(['one', 'far'])).toHaveLength(2);
  });

  test('may be of any model where those of the upstream are discovered, and of none at another one', () => {
    const limited = { models: { any: { maxInFlight: 1 } } };
    expect(problemsWith(limited, { models: { from: 'local' } })).toEqual([]);
    const url = 'http://127.0.0.1:8001/v1';
    expect(
      problemsWith({}, { upstreams: { far: { url }, near: { url, ...limited } }, models: { from: 'far' } }),
    ).toEqual(['upstreams.near.models.any: no route has this model here']);
  });

  test('have the queue and the patience of the upstream unless they say otherwise', () => {
    const all = {
      a: {
        queue: 7,
        queueWait: 900,
        models: { m: { maxInFlight: 1 }, n: { maxInFlight: 2, queue: 0, queueWait: 5 } },
      },
      b: { models: { m: { learnLimits: true } } },
    };
    const usual = { queue: 100, queueWaitMs: 30_000 };
    expect(Object.fromEntries(limiterSettingsOf(all))).toEqual({
      a: {
        ...unset,
        queue: 7,
        queueWaitMs: 900,
        models: new Map([
          ['m', { ...unset, maxInFlight: 1, queue: 7, queueWaitMs: 900 }],
          ['n', { ...unset, maxInFlight: 2, queue: 0, queueWaitMs: 5 }],
        ]),
      },
      b: {
        ...unset,
        ...usual,
        queue: 1_000,
        models: new Map([['m', { ...unset, ...usual, learnLimits: true }]]),
      },
    });
    expect(problemsWith({ queue: 7, queueWait: '9s', models: { m: { maxInFlight: 1 } } })).toEqual([]);
  });
});

const unset = { maxInFlight: null, requestsPerMinute: null, tokensPerMinute: null, learnLimits: false };
