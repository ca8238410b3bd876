import { expect, test } from 'vitest';
import { differencesOf, fieldsOf, fieldsOfKey } from '../../src/domain/audit/differences.ts';
import type { ApiKey, KeyChanges } from '../../src/domain/keys/api-key.ts';
import { changeKey } from '../../src/domain/keys/change-key.ts';
import { changedKey } from '../../src/http/admin/key-inputs.ts';
import { payingKey } from '../support/stored-rows.ts';

const budget = { amountNanos: 1, per: 'week', timeZone: 'UTC', warnAt: [500], raise: null } as const;

/** A change of each setting, by the name that the admin API has for it. */
const changes: Readonly<Record<string, KeyChanges>> = {
  name: { name: 'another' },
  concurrency: { concurrency: 9 },
  requestsPerMinute: { requestsPerMinute: 9 },
  tokensPerMinute: { tokensPerMinute: 9 },
  tokensPerDay: { tokensPerDay: 9 },
  queueWait: { queueWaitMs: 9_000 },
  models: { models: ['m'] },
  allowFrom: { allowFrom: ['10.0.0.0/8'] },
  tags: { tags: ['t'] },
  expiresAt: { expiresAt: 9 },
  budget: { budget },
  group: { group: 'g' },
  weight: { weight: 9 },
  joinRetries: { joinRetriesMs: 9_000 },
  lowBalance: { lowBalanceNanos: 9 },
  compatibility: { compatibility: { sampling: 'strict' } },
};

const told = (before: ApiKey, after: ApiKey) =>
  differencesOf(fieldsOfKey(before, 'h'), fieldsOfKey(after, 'h'));

test('each setting that operators can change is told, and is as before once it is taken back', () => {
  expect(Object.keys(changedKey.shape).toSorted()).toEqual(Object.keys(changes).toSorted());
  for (const [setting, change] of Object.entries(changes)) {
    const changed = changeKey(payingKey, change);
    const fields = told(payingKey, changed).map(({ field }) => field);
    expect([setting, fields.length > 0 && fields.every((field) => field.split('.')[0] === setting)]).toEqual([
      setting,
      true,
    ]);
    if (setting === 'name' || setting === 'compatibility') continue;
    const removal = Object.fromEntries(Object.keys(change).map((name) => [name, null])) as KeyChanges;
    const without = changeKey({ ...payingKey, limits: {}, lowBalanceNanos: null }, removal);
    expect(changeKey(changeKey(without, change), removal)).toEqual(without);
  }
});

test('of a budget and of compatibility only what is named changes, and a budget begins with an amount and a period', () => {
  const key = { ...payingKey, budget, compatibility: { sampling: 'strict' } } as const;
  expect(changeKey(key, { budget: { amountNanos: 2 } }).budget).toEqual({ ...budget, amountNanos: 2 });
  expect(changeKey(key, { compatibility: { usageCost: true } }).compatibility).toEqual({
    sampling: 'strict',
    usageCost: true,
  });
  expect(changeKey(payingKey, { budget: { amountNanos: 2 } }).budget).toBeNull();
  expect(changeKey(payingKey, { budget: { amountNanos: 2, per: 'day' } }).budget).toEqual({
    amountNanos: 2,
    per: 'day',
    timeZone: 'UTC',
    warnAt: [],
    raise: null,
  });
});

test('values that are too long, and fields that are too many, are cut: what differs behind the cut shows', () => {
  const long = 'x'.repeat(10_000);
  const [change] = differencesOf(fieldsOf({ a: long }), fieldsOf({ a: `${long}y` }));
  expect([change?.before?.length, change?.after?.length]).toEqual([521, 521]);
  expect(change?.before).not.toBe(change?.after);
  const many = fieldsOf(Object.fromEntries(Array.from({ length: 205 }, (_, at) => [`f${at}`, at])));
  const all = differencesOf(new Map(), many);
  expect([all.length, all.at(-1)?.field]).toEqual([201, '5 more fields']);
});
