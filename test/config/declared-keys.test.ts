import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { declaredKeysOf } from '../../src/config/declared-keys.ts';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { mintKey } from '../../src/domain/keys/api-key.ts';

const key = 'sk-Yq3vT9LmW0zKc7Rb1';
const hash = createHash('sha256').update(key).digest('hex');

function read(keys: unknown) {
  return readConfig({
    keys,
    upstreams: { demo: { url: 'demo:' } },
    models: { small: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
  });
}
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
      models: ['small'],
      expiresAt: '2030-01-01',
      compatibility: { sampling: 'strict' },
    };
    const [bob, eve] = [
      declarationsOf({ bob: { key, ...settings } }),
      declarationsOf({ eve: { key: ` ${key}\n` } }),
    ];
    expect(bob).toEqual([
      {
        name: 'bob',
        hash,
        limits: { concurrency: 3, requestsPerMinute: 40, queueWaitMs: 5_000 },
        models: ['small'],
        expiresAt: Date.UTC(2030, 0, 1),
        compatibility: { sampling: 'strict' },
      },
    ]);
    expect(eve).toEqual([
      { name: 'eve', hash, limits: {}, models: null, expiresAt: null, compatibility: {} },
    ]);
    expect(declarationsOf({ eve: { key: `sha256:${hash.toUpperCase()}` } })).toEqual(eve);
    expect(JSON.stringify(read({ eve: { key } }))).not.toContain(key);
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
    ['a short hash', { key: 'sha256:abc' }, 'key: expected sha256: and 64 hexadecimal digits'],
    [
      'the hash of nothing',
      { key: `sha256:${createHash('sha256').digest('hex')}` },
      'key: the hash of an empty text: was a variable not set?',
    ],
    [
      'a balance',
      { key, balance: '5.00' },
      'balance: a balance is not declared, because each start would pay it again: give it by credits, which are booked once per reference (textgate keys credit)',
    ],
    ['a misspelt setting', { key, concurency: 1 }, "concurency: unknown key; did you mean 'concurrency'?"],
    [
      'an unknown model',
      { key, models: ['smal'] },
      "models[0]: no model has this name; did you mean 'small'?",
    ],
    [
      'a time in words',
      { key, expiresAt: 'soon' },
      'expiresAt: expected a time such as 2030-01-01T00:00:00Z, or a day',
    ],
    ['a limit of zero', { key, concurrency: 0 }, 'concurrency: expected 1 or more'],
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

  test('are refused with names that can not be shown', () => {
    expect(problemsOf({ 'b\nob': { key } })).toEqual([
      expect.stringContaining('expected a name without control characters'),
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

test('the documentation of keys has a section that is valid', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'keys.md'), 'utf8');
  const [, block = ''] = /```yaml\n(keys:[^`]*)```/.exec(page) ?? [];
  const { keys } = parse(block.replace('${BOBS_KEY}', key)) as { keys: unknown };
  expect(declarationsOf(keys)).toMatchObject([
    { name: 'bob', hash },
    { name: 'batch', models: ['small'] },
  ]);
});
