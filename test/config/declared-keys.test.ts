import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { declaredKeysOf } from '../../src/config/declared-keys.ts';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { environmentConfig } from '../../src/config/load.ts';
import { mintKey } from '../../src/domain/keys/api-key.ts';
import { loadYaml, problemsOf as problemsOfLoading } from '../support/config-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const key = 'sk-Yq3vT9LmW0zKc7Rb1';
const hash = createHash('sha256').update(key).digest('hex');

function read(keys: unknown) {
  return readConfig({
    keys,
    groups: { research: {} },
    upstreams: { demo: { url: 'demo:' } },
    models: { small: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
  });
}

test('a declared key may name a path that is passed on among its models', () => {
  const found = readConfig({
    keys: { bob: { key, models: ['small', '/tokenize'] } },
    upstreams: { local: { url: 'http://127.0.0.1:8000/v1' } },
    models: { small: { routes: [{ upstream: 'local', model: 'm' }], free: true } },
    passthrough: [{ path: '/tokenize', upstream: 'local', free: true }],
  });
  expect(found.kind).toBe('config');
});

function problemsOf(keys: unknown): readonly string[] {
  const found = read(keys);
  return found.kind === 'problems' ? found.problems.map(writeProblem) : [];
}
function declarationsOf(keys: unknown) {
  const found = read(keys);
  if (found.kind === 'problems') throw new Error(found.problems.map(writeProblem).join('\n'));
  return declaredKeysOf(found.config.keys);
}

describe('declared keys', () => {
  test('are read with their settings; a text and its hash are the same key, and the text is not kept', () => {
    const settings = {
      concurrency: 3,
      requestsPerMinute: '40',
      queueWait: '5s',
      weight: '7',
      joinRetries: '10s',
      tokensPerMinute: 900,
      tokensPerDay: '8000',
      models: ['small'],
      allowFrom: ['10.0.0.0/8', '2001:DB8:0::1', '10.0.0.0/8'],
      tags: ['search', 'chat:2', 'search'],
      expiresAt: '2030-01-01',
      budget: {
        amount: '20',
        per: 'week',
        timeZone: 'Asia/Kathmandu',
        warnAt: ['0.95', '.5', '0.500'],
        raise: { amount: '1.5', until: '2030-01-01' },
      },
      lowBalance: '2.50',
      group: 'research',
      compatibility: { sampling: 'strict', usageCost: true, chargeComment: 'true' },
    };
    const [bob, eve] = [
      declarationsOf({ bob: { key, ...settings } }),
      declarationsOf({ eve: { key: ` ${key}\n` } }),
    ];
    expect(bob).toEqual([
      {
        name: 'bob',
        hash,
        limits: {
          concurrency: 3,
          requestsPerMinute: 40,
          queueWaitMs: 5_000,
          tokensPerMinute: 900,
          tokensPerDay: 8_000,
        },
        models: ['small'],
        allowFrom: ['10.0.0.0/8', '2001:db8::1'],
        tags: ['search', 'chat:2'],
        expiresAt: Date.UTC(2030, 0, 1),
        budget: {
          amountNanos: 20_000_000_000,
          per: 'week',
          timeZone: 'Asia/Kathmandu',
          warnAt: [500, 950],
          raise: { nanos: 1_500_000_000, untilMs: Date.UTC(2030, 0, 1) },
        },
        lowBalanceNanos: 2_500_000_000,
        group: 'research',
        weight: 7,
        joinRetriesMs: 10_000,
        compatibility: { sampling: 'strict', usageCost: true, chargeComment: true },
      },
    ]);
    expect(eve).toEqual([
      {
        name: 'eve',
        hash,
        limits: {},
        models: null,
        allowFrom: null,
        tags: [],
        lowBalanceNanos: null,
        expiresAt: null,
        compatibility: {},
        budget: null,
        group: null,
        weight: 1,
        joinRetriesMs: null,
      },
    ]);
    for (const prefix of ['sha256:', 'SHA256:', ' Sha256:'])
      expect(declarationsOf({ eve: { key: `${prefix}${hash.toUpperCase()}` } })).toEqual(eve);
    expect(JSON.stringify(read({ eve: { key } }))).not.toContain(key);
  });

  test.each([
    ['1s', 1_000],
    ['60s', 60_000],
    ['1m', 60_000],
    ['0s', null],
  ])('may have a time for retries of %s', (joinRetries, joinRetriesMs) => {
    expect(declarationsOf({ bob: { key, joinRetries } })).toMatchObject([{ joinRetriesMs }]);
  });

  test('may be issued keys', () => {
    expect(declarationsOf({ bob: { key: mintKey(Buffer.alloc(44, 'some bytes')).secret } })).toHaveLength(1);
  });

  const misspelt = `${mintKey(Buffer.alloc(44, 'some bytes')).secret.slice(0, -1)}_`;
  test.each<[string, unknown, string]>([
    ['no key', {}, 'key: missing: expected a text, for example "${BOBS_KEY}"'],
    [
      'a key of digits',
      { key: 12_345_678_901_234 },
      'key: expected a text, not a number: write it in quotes',
    ],
    [
      'a short key',
      { key: 'Yq3vT9LmW0zKc7Rb1' },
      'key: expected 20 characters or more: a shorter key can be guessed',
    ],
    ['a long key', { key: key.repeat(60) }, 'key: expected 1024 characters or less'],
    ['a key with a blank', { key: `${key} ${key}` }, 'key: expected printable ASCII without blanks'],
    ['a key that is not ASCII', { key: `${key}ü` }, 'key: expected printable ASCII without blanks'],
    [
      'a placeholder',
      { key: 'your-api-key-goes-here' },
      'key: can be guessed: expected a random key, such as one made by: openssl rand -hex 32',
    ],
    [
      'a misspelt key',
      { key: misspelt },
      'key: a textgate key with a typing error: its last characters are a checksum, which does not match',
    ],
    [
      'a hash after a misspelt prefix',
      { key: `sha-256:${hash}` },
      'key: expected sha256: and 64 hexadecimal digits',
    ],
    [
      'a hash after an equals sign',
      { key: `SHA256=${hash}` },
      'key: expected sha256: and 64 hexadecimal digits',
    ],
    ['a short hash', { key: 'sha256:abc' }, 'key: expected sha256: and 64 hexadecimal digits'],
    [
      'the hash of nothing',
      { key: `sha256:${createHash('sha256').digest('hex')}` },
      'key: the hash of an empty text: was a variable not set?',
    ],
    [
      'a balance',
      { key, balance: '5.00' },
      'balance: a balance is not declared, because each start would pay it again:\ngive it by credits, which are booked once per reference (textgate keys credit)',
    ],
    ['a misspelt setting', { key, concurency: 1 }, "concurency: unknown key; did you mean 'concurrency'?"],
    [
      'an unknown model',
      { key, models: ['smal'] },
      "models[0]: no model has this name; did you mean 'small'?",
    ],
    [
      'a pattern of models',
      { key, models: ['sma*'] },
      'models[0]: expected the name of one model: patterns with * are not read here',
    ],
    [
      'a time in words',
      { key, expiresAt: 'soon' },
      'expiresAt: expected a time such as 2030-01-01T00:00:00Z, or a day',
    ],
    [
      'a time that has no year of four digits in UTC',
      { key, expiresAt: '9999-12-31T23:59:59-14:00' },
      'expiresAt: expected a time whose year in UTC is from 0000 to 9999',
    ],
    [
      'a time before all years of four digits in UTC',
      { key, expiresAt: '0000-01-01T00:00:00+01:00' },
      'expiresAt: expected a time whose year in UTC is from 0000 to 9999',
    ],
    ['a limit of zero', { key, concurrency: 0 }, 'concurrency: expected 1 or more'],
    [
      'a limit that no column holds',
      { key, requestsPerMinute: 2_147_483_648 },
      'requestsPerMinute: expected 2147483647 or less',
    ],
    ['a huge limit', { key, concurrency: 1e20 }, 'concurrency: expected 2147483647 or less'],
    [
      'a long wait',
      { key, queueWait: '25d' },
      'queueWait: expected a duration such as 250ms, 5s or 10m, and at most 24d',
    ],
    ...['999ms', '60001ms', '2m'].map((joinRetries): [string, unknown, string] => [
      `a time for retries of ${joinRetries}`,
      { key, joinRetries },
      'joinRetries: expected a duration from 1s to 60s, or 0s for off',
    ]),
    [
      'a time for retries that is none',
      { key, joinRetries: 'off' },
      'joinRetries: expected a duration such as 250ms, 5s or 10m, and at most 24d',
    ],
  ])('are refused with %s, which is not quoted', (_what, declared, problem) => {
    const problems = problemsOf({ bob: declared });
    expect(problems).toEqual([`keys.bob.${problem}`]);
    expect(problems[0]).not.toMatch(/Yq3vT9|your-api|abc/);
  });

  test('are refused when two have one secret', () => {
    expect(problemsOf({ bob: { key }, eve: { key: `sha256:${hash}` } })).toEqual([
      'keys.eve.key: the same key as that of bob: each name needs a key of its own',
    ]);
  });

  test.each(['b\nob', 'bob\u202e'])('are refused with the name %j, which can not be shown', (name) => {
    expect(problemsOf({ [name]: { key } })).toEqual([
      expect.stringContaining('expected a name without control characters'),
    ]);
  });

  test.each([
    ['', 'keys."": expected a name that is not empty'],
    ['bob ', 'keys.bob : expected a name without blanks at its ends: leave them out'],
    ['b\ud83d', 'keys.b\ud83d: expected a name of whole characters: it has half of a surrogate pair'],
  ])('are refused with the name %j', (name, problem) => {
    expect(problemsOf({ [name]: { key } })).toEqual([problem]);
  });

  test('are refused with limits that no column holds, at their lines, and so are those of all keys', () => {
    const yaml = [
      'limits: { concurrency: 1e20, requestsPerMinute: 2147483648 }',
      'keys:',
      `  bob: { key: ${key}, concurrency: "2147483648" }`,
      '  "b\\0": { key: "sk-Zq3vT9LmW0zKc7Rb1xy" }',
      'upstreams: { demo: { url: "demo:" } }',
      'models: { "a\\0": { routes: [{ upstream: demo, model: demo }], free: true } }',
    ].join('\n');
    expect(problemsOfLoading(() => loadYaml(yaml))).toEqual([
      'line 1: limits.concurrency: expected 2147483647 or less',
      'line 1: limits.requestsPerMinute: expected 2147483647 or less',
      'line 3: keys.bob.concurrency: expected 2147483647 or less',
      'line 4: keys.…: expected a name without control characters, direction marks and zero-width characters',
      'line 6: models.…: expected a text without the character U+0000',
    ]);
  });

  test('are refused when there are too many of them', () => {
    const many = Array.from({ length: 1_001 }, (_, number) => {
      const text = createHash('sha256').update(String(number)).digest('hex');
      return [`key ${number}`, { key: `sha256:${text}` }] as const;
    });
    expect(problemsOf(Object.fromEntries(many))).toEqual(['keys: expected 1000 keys or less']);
    expect(problemsOf(Object.fromEntries(many.slice(1)))).toEqual([]);
  });
});

describe('names that the schema would leave out in silence', () => {
  const demo = { url: 'demo:' };
  test.each<[string, object, string]>([
    ['a key', { keys: JSON.parse(`{"__proto__":{"key":"${key}"}}`) as object }, 'keys.__proto__'],
    ['an upstream', { upstreams: { demo, ['__proto__']: demo } }, 'upstreams.__proto__'],
    ['a model', { models: { ['__proto__']: { routes: [], free: true } } }, 'models.__proto__'],
    ['a webhook', { webhooks: JSON.parse('{"__proto__":{}}') as object }, 'webhooks.__proto__'],
    ['a group', { groups: { ['__proto__']: {} } }, 'groups.__proto__'],
    [
      'a header',
      { upstreams: { demo: { ...demo, headers: { ['__proto__']: 'x' } } } },
      'upstreams.demo.headers.__proto__',
    ],
  ])('are refused for %s', (_what, sections, path) => {
    const found = readConfig({ upstreams: { demo }, models: { from: 'demo' }, ...sections });
    const problems = found.kind === 'problems' ? found.problems.map(writeProblem) : [];
    expect(problems).toEqual([`${path}: this name is reserved: choose another one`]);
  });
});

describe('the key of the environment', () => {
  const yaml = (keys: string) => `upstreams: { demo: { url: "demo:" } }\nmodels: { from: demo }\n${keys}`;
  function fileWith(text: string): string {
    const file = join(makeTemporaryFolder(), 'key');
    writeFileSync(file, text);
    return file;
  }

  test.each([
    '${PRODUCTION_SERVICE_CREDENTIAL}',
    '$BILLING_TEAM_CREDENTIAL_STRING',
    '${A_NAME:-and a default}',
  ])(
    'is refused where it is the reference %s, which nothing has replaced, in the variable and in the file',
    (reference) => {
      const problem = 'a reference, which is replaced in config files only: write the value itself';
      expect(problemsOfLoading(() => loadYaml(yaml(''), { TEXTGATE_KEY: reference }))).toEqual([
        `TEXTGATE_KEY: ${problem}`,
      ]);
      const environment = { TEXTGATE_KEY_FILE: fileWith(`${reference}\n`) };
      expect(problemsOfLoading(() => environmentConfig(environment))).toEqual([
        `TEXTGATE_KEY_FILE: ${problem}`,
      ]);
    },
  );

  test('is refused by the name of its variable where the config declares the same key', () => {
    const file = yaml(`keys: { bob: { key: ${key} } }\n`);
    const problem = 'the same key as that of bob: each name needs a key of its own';
    expect(problemsOfLoading(() => loadYaml(file, { TEXTGATE_KEY: key }))).toEqual([
      `TEXTGATE_KEY: ${problem}`,
    ]);
    const environment = { TEXTGATE_KEY_FILE: fileWith(key) };
    expect(problemsOfLoading(() => loadYaml(file, environment))).toEqual([`TEXTGATE_KEY_FILE: ${problem}`]);
  });

  test.each([
    ['a device', () => '/dev/zero', 'this is no regular file'],
    ['a pipe', makePipe, 'this is no regular file'],
    ['a large file', () => fileWith(key.repeat(1_000)), 'the file has more than 16384 bytes'],
    ['a key instead of a path', () => key, 'there is no such file'],
  ])('is refused where TEXTGATE_KEY_FILE names %s, which is not quoted', (_what, make, problem) => {
    const environment = { TEXTGATE_KEY_FILE: make() };
    expect(problemsOfLoading(() => environmentConfig(environment))).toEqual([
      `TEXTGATE_KEY_FILE: ${problem}`,
    ]);
  });

  /** A pipe that nothing is written into, which reading would wait for. */
  function makePipe(): string {
    const pipe = join(makeTemporaryFolder(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    return pipe;
  }
});

test('the documentation of keys has a section that is valid', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'operators', 'keys.md'), 'utf8');
  const [, block = ''] = /```yaml\n(keys:[^`]*)```/.exec(page) ?? [];
  const { keys } = parse(block.replace('${BOBS_KEY}', key)) as { keys: unknown };
  expect(declarationsOf(keys)).toMatchObject([
    { name: 'bob', hash },
    { name: 'batch', models: ['small'] },
  ]);
});
