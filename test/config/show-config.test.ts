import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import type { ConfigInput } from '../../src/config/schema/schema.ts';
import { redactedConfig, showConfig } from '../../src/config/show-config.ts';
import { whyNotStorable } from '../../src/shared/storable-text.ts';
import { loadYaml } from '../support/config-file.ts';
import { propertyRun } from '../support/property-run.ts';

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);

/** Texts that mean something else in YAML or in a reference unless they are written with care. */
const text = fc.oneof(
  word,
  fc.string({ minLength: 1, maxLength: 12, unit: 'binary' }),
  fc.constantFrom(
    '$',
    '$$',
    '${KEY}',
    '$KEY',
    'true',
    'null',
    '~',
    '0x10',
    '1.50',
    '# x',
    '- a',
    'a: b',
    '*a',
    '!a',
    ' a ',
    'a\nb',
    "'",
    '"',
  ),
);

/** The name of a model: a key of the file, in which a reference is refused. */
const modelName = text.filter(
  (name) =>
    !name.includes('${') && name !== '__proto__' && !/\p{Cc}/u.test(name) && whyNotStorable(name) === null,
);

const secret = fc.constantFrom('sk-canary-0123456789', 'sk-canary$012345678${KEY}', 'sk-canary"0123456789\\');
const duration = fc
  .tuple(fc.integer({ min: 1, max: 2_000 }), fc.constantFrom('ms', 's', 'm', '.5s'))
  .map(([count, unit]) => `${count}${unit}`);
const size = fc
  .tuple(fc.integer({ min: 1, max: 5_000 }), fc.constantFrom('B', 'KiB', 'MiB', ' GiB'))
  .map(([count, unit]) => `${count}${unit}`);
const usd = fc.oneof(
  fc.integer({ min: 0, max: 9_000_000 }).map(String),
  fc.tuple(fc.nat(999), fc.stringMatching(/^\d{1,9}$/)).map((digits) => digits.join('.')),
);
const count = fc.integer({ min: 1, max: 1_000_000 });
const price = fc.record(
  {
    input: usd,
    output: usd,
    cacheWrite: usd,
    cachedInput: usd,
    above: fc.record({ inputTokens: count, input: usd, cachedInput: usd, cacheWrite: usd, output: usd }),
  },
  { requiredKeys: ['input', 'output'] },
);
const pattern = text.filter(
  (each) => !each.includes('*') && each !== '__proto__' && whyNotStorable(each) === null,
);

const upstream = fc.record(
  {
    url: fc.constantFrom(
      'http://127.0.0.1:8000/v1',
      'https://host/a$b/v1?api-version=canary&key=%24canary&a%26b=canary',
      'demo:',
    ),
    apiKey: secret,
    authHeader: fc.constantFrom('api-key', 'X-$'),
    headers: fc.dictionary(fc.constantFrom('X-Org', 'x-$', 'Authorization'), secret),
    allowLinkLocal: fc.boolean(),
    dialects: fc.constantFrom<('chat' | 'gemini')[]>(['chat'], ['gemini', 'chat']),
    probe: fc.record({ path: fc.constantFrom('/models', '/$x'), interval: fc.constantFrom('1s', '90s') }),
    timeouts: fc.record({ connect: duration, firstText: duration, idle: duration }, { requiredKeys: [] }),
  },
  { requiredKeys: ['url'] },
);

/** The built-in demo has Chat Completions only. */
const isUsable = ({ url, dialects = [] }: { url: string; dialects?: readonly string[] }): boolean =>
  url !== 'demo:' || !dialects.includes('gemini');

const route = fc.record(
  {
    upstream: fc.constant('mine'),
    model: text.filter((name) => whyNotStorable(name) === null),
    weight: count,
    cost: fc.record({ input: usd, output: usd }),
    retryWithin: duration,
  },
  { requiredKeys: ['upstream', 'model'] },
);
const model = fc.oneof(
  fc.record({
    routes: fc.array(route, { minLength: 1, maxLength: 2 }),
    policy: fc.constantFrom('order', 'fastest'),
    free: fc.constant(true as const),
    holdTokens: count,
  }),
  fc.record({ routes: fc.array(route, { minLength: 1, maxLength: 2 }), price }),
  fc.record({
    routes: fc.array(route, { minLength: 2, maxLength: 2 }),
    price,
    thinks: fc.constant(true as const),
    hedge: fc.record({ after: fc.constantFrom('p95', '2.5s'), budget: fc.constantFrom('5%', '0.25%', 0.07) }),
  }),
  fc.record({
    routes: fc.array(route, { minLength: 1, maxLength: 2 }),
    price,
    shadow: fc.record({
      route: fc.record({ upstream: fc.constant('mine'), model: fc.constant('m') }),
      share: fc.oneof(fc.constantFrom('5%', '0.05'), fc.double({ min: 0, max: 1, noNaN: true })),
      free: fc.constant(true as const),
    }),
  }),
);

const declaredKey = fc.record(
  {
    key: fc.constantFrom('sk-canary-Yq3vT9LmW0zKc7Rb1', `sha256:${'0a'.repeat(32)}`),
    concurrency: count,
    queueWait: duration,
    expiresAt: fc.constantFrom('2030-01-01', '2030-01-01T12:00:00.250+02:00'),
    compatibility: fc.record({ sampling: fc.constantFrom('strip', 'strict') }, { requiredKeys: [] }),
  },
  { requiredKeys: ['key'] },
);

const configs = fc.record(
  {
    server: fc.record(
      { port: fc.integer({ min: 0, max: 8_080 }), drain: duration, maxBody: size, maxConnections: count },
      { requiredKeys: [] },
    ),
    admin: fc.record({ host: fc.constantFrom('0.0.0.0', '::1'), token: secret }, { requiredKeys: [] }),
    storage: fc.record({ url: fc.constantFrom('sqlite:a$b.db', 'sqlite::memory:', 'postgres://me@db/gate') }),
    limits: fc.record({ queueWait: duration, lowBalance: usd, concurrency: count }, { requiredKeys: [] }),
    compatibility: fc.record({
      responsesDone: fc.boolean(),
      usageCost: fc.boolean(),
      chargeComment: fc.boolean(),
    }),
    keys: fc.dictionary(fc.constantFrom('bob', 'b$', 'e: e'), declaredKey, { maxKeys: 1 }),
    upstreams: upstream.filter(isUsable).map((mine) => ({ mine, other: { url: 'http://127.0.0.1:1/v1' } })),
    passthrough: fc.constantFrom(
      [],
      [
        { path: '/tokenize', upstream: 'other', price: { request: '0.001' } },
        { path: '/x', upstream: 'other' },
      ],
    ),
    models: fc.oneof(
      fc.dictionary(modelName, model, { maxKeys: 3 }).filter(({ from }) => from === undefined),
      fc.record(
        {
          from: fc.constant('mine'),
          allow: fc.array(pattern, { minLength: 1, maxLength: 2 }),
          rename: fc.dictionary(
            pattern.filter((each) => !each.includes('${')),
            pattern,
            { maxKeys: 2 },
          ),
          price,
        },
        { requiredKeys: ['from'] },
      ),
    ),
  },
  { requiredKeys: ['upstreams', 'models'] },
) as fc.Arbitrary<ConfigInput>;

test('the values of a query are hidden in the path of a probe, too, as text and as JSON', () => {
  const config = checkConfig(
    {
      upstreams: { up: { url: 'http://x/v1', probe: { path: '/models?key=hunter2x&all' } } },
      models: { from: 'up' },
    },
    'the config',
  );
  const hidden = '/models?key=(hidden-by-config-show)&all=(hidden-by-config-show)';
  expect(showConfig(config)).toContain(`path: ${hidden}`);
  expect(JSON.stringify(redactedConfig(config))).toContain(hidden);
});

describe('a shown config', () => {
  test('is a valid file that means the same but for its secrets', () => {
    fc.assert(
      fc.property(configs, (input) => {
        const config = checkConfig(input, 'the generated config');
        const shown = showConfig(config);
        expect(shown).not.toContain('canary');
        const again = loadYaml(shown, { KEY: 'not to be read' });
        expect(redactedConfig(again)).toEqual(redactedConfig(config));
        expect(showConfig(again)).toBe(shown);
      }),
      propertyRun(100),
    );
  });

  test('shows a listed model with a name that is a key of discovered models', () => {
    const priced = { routes: [{ upstream: 'mine', model: 'm' }], price: { input: '1', output: '2' } };
    const config = checkConfig(
      {
        upstreams: { mine: { url: 'demo:' } },
        models: { price: priced, allow: priced },
      },
      'the config',
    );
    expect(loadYaml(showConfig(config)).models).toEqual(config.models);
  });
});
