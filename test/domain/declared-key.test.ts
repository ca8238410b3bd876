import { expect, test } from 'vitest';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import { compareDeclarations } from '../../src/domain/keys/declared-key.ts';
import type { DeclaredKey } from '../../src/domain/keys/declared-key.ts';

const declared: DeclaredKey = {
  name: 'bob',
  hash: 'h',
  limits: { concurrency: 3 },
  models: null,
  allowFrom: null,
  tags: [],
  expiresAt: null,
  lowBalanceNanos: null,
  compatibility: {},
  budget: null,
  group: null,
  weight: 1,
  joinRetriesMs: null,
};
const { hash, ...settings } = declared;
const key: ApiKey = {
  ...settings,
  id: 'key_of_bob',
  createdAtMs: 1,
  revokedAtMs: null,
  hasBalance: true,
  isDeclared: true,
};

const budget = { amountNanos: 8, per: 'week', timeZone: 'UTC', warnAt: [], raise: null } as const;

test.each<[string, Partial<DeclaredKey>]>([
  ['secret', { hash: 'other' }],
  ['limits', { limits: { concurrency: 3, queueWaitMs: 1 } }],
  ['models', { models: ['a'] }],
  ['addresses', { allowFrom: ['10.0.0.0/8'] }],
  ['tags', { tags: ['chat'] }],
  ['expiry', { expiresAt: 5 }],
  ['low balance', { lowBalanceNanos: 5 }],
  ['compatibility', { compatibility: { sampling: 'strict' } }],
  ['budget', { budget }],
  ['group', { group: 'research' }],
  ['weight', { weight: 2 }],
  ['time for retries', { joinRetriesMs: 1_000 }],
])('a declared key is stored again when its %s is another one, and not when nothing is', (_what, change) => {
  const compare = (next: DeclaredKey) =>
    compareDeclarations({ keys: [{ key, hash }], retired: new Set(), lastLine: 0 }, [next], (name) => ({
      id: name,
      spareId: name,
    })).changed.length;
  expect(compare(declared)).toBe(0);
  expect(compare({ ...declared, ...change })).toBe(1);
});

test('a declared key is not stored again for the order of its settings', () => {
  const terms = { limits: { concurrency: 1, queueWaitMs: 2 }, budget };
  const turned = {
    limits: { queueWaitMs: 2, concurrency: 1 },
    budget: { raise: null, warnAt: [], timeZone: 'UTC', per: 'week', amountNanos: 8 },
  } as const;
  const stored = { keys: [{ key: { ...key, ...terms }, hash }], retired: new Set<string>(), lastLine: 0 };
  const compare = (next: Partial<DeclaredKey>) =>
    compareDeclarations(stored, [{ ...declared, ...next }], (name) => ({ id: name, spareId: name })).changed;
  expect(compare(turned)).toEqual([]);
  expect(compare({ ...turned, limits: { queueWaitMs: 1, concurrency: 2 } })).toHaveLength(1);
});
