import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GroupCounts, historyGroupings, maxGroups, noCounts } from '../../../src/domain/history/counts.ts';
import type { CountedExchange, CountedGroup } from '../../../src/domain/history/counts.ts';
import { readPart, writePart } from '../../../src/domain/history/part-text.ts';
import { refuse } from '../../../src/shared/errors.ts';
import { quantilesOf } from '../../../src/shared/time-bounds.ts';
import { summary } from '../../support/exchange-summary.ts';
import { propertyRun } from '../../support/property-run.ts';

const retry = { limit: 1, retryAfterMs: 1 } as const;
const ofKey = refuse('rate_limit_exceeded', '', { limit: { ...retry, source: 'key', kind: 'rate' } });
const ofGroup = refuse('concurrency_limit_exceeded', '', {
  limit: { ...retry, source: 'group', kind: 'concurrency' },
});

const usage = (outputTokens: number) => ({
  inputTokens: 1,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens,
  reasoningTokens: 0,
  totalTokens: 1 + outputTokens,
});

/** A request that ended. */
const exchange: fc.Arbitrary<CountedExchange> = fc.record({
  upstream: fc.constantFrom('a', 'b', null),
  model: fc.constantFrom('small', '__proto__', null),
  outcome: fc.constantFrom('completed', 'refused', 'client_closed'),
  refusal: fc.constantFrom(null, ofKey, ofGroup, refuse('model_not_found', '')),
  usage: fc.option(fc.nat({ max: 9_000 }).map(usage)),
  chargeNanos: fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER),
  protocol: fc.constantFrom('chat', 'passthrough'),
  mode: fc.constantFrom('stream', 'sync'),
  firstTextMs: fc.option(fc.nat({ max: 4_000_000 })),
});

/** The groups of some requests by plain sums over them. */
function plainSums(all: readonly CountedExchange[], by: string) {
  const groups = new Map<string, { requests: number; charge: bigint; tokens: number; texts: number }>();
  for (const { upstream, model, ...one } of all) {
    const name = JSON.stringify([
      by.includes('upstream') ? upstream : null,
      by.includes('model') ? model : null,
    ]);
    const sums = groups.get(name) ?? { requests: 0, charge: 0n, tokens: 0, texts: 0 };
    const isTimed = one.protocol !== 'passthrough' && one.mode === 'stream' && one.firstTextMs !== null;
    groups.set(name, {
      requests: sums.requests + 1,
      charge: sums.charge + BigInt(one.chargeNanos),
      tokens: sums.tokens + (one.usage?.outputTokens ?? 0),
      texts: sums.texts + Number(isTimed),
    });
  }
  return groups;
}

const sum = (numbers: Readonly<Record<string, number>>) =>
  Object.values(numbers).reduce((total, one) => total + one, 0);

function foundSums(groups: Iterable<CountedGroup>) {
  return new Map(
    [...groups].map(({ upstream, model, counts }) => [
      JSON.stringify([upstream, model]),
      {
        requests: sum(counts.requests),
        charge: counts.chargeNanos,
        tokens: counts.outputTokens,
        texts: sum(counts.firstTexts),
      },
    ]),
  );
}

const counted = (all: readonly CountedExchange[]): GroupCounts => {
  const pairs = new GroupCounts('upstream,model');
  for (const one of all) pairs.count(one);
  return pairs;
};

describe('the counts of requests', () => {
  test('are those of the requests by every grouping, however they are parted, stored and added', () => {
    fc.assert(
      fc.property(fc.array(fc.array(exchange, { maxLength: 20 }), { maxLength: 4 }), (parts) => {
        for (const by of historyGroupings) {
          const added = new GroupCounts(by);
          for (const part of parts) {
            const groups = [...counted(part).all()];
            added.add(readPart(writePart({ figures: null, groups })).groups);
          }
          expect(foundSums(added.top())).toEqual(plainSums(parts.flat(), by));
        }
      }),
      propertyRun(100),
    );
  });

  test('tell limits of this gateway apart from other refusals, and those of groups from those of keys', () => {
    const whole = new GroupCounts('');
    for (const refusal of [ofKey, ofKey, ofGroup, refuse('model_not_found', ''), null])
      whole.count({ ...summary, refusal });
    expect(whole.whole().refusals).toEqual({ rate: 2, group_concurrency: 1, model_not_found: 1 });
    expect(whole.whole().requests).toEqual({ completed: 5 });
  });

  test('have no refusal of a client that left before it got an answer', () => {
    const whole = new GroupCounts('');
    const refusal = refuse('server_error', '');
    whole.count({ ...summary, outcome: 'client_closed', refusal });
    whole.count({ ...summary, outcome: 'crashed', refusal });
    expect(whole.whole()).toMatchObject({
      requests: { client_closed: 1, crashed: 1 },
      refusals: { server_error: 1 },
    });
  });

  test('keep the most frequent groups, and one for all others that loses none of them', () => {
    const counts = new GroupCounts('model');
    for (let at = 0; at < 200; at++)
      for (let times = 0; times <= at; times++) counts.count({ ...summary, model: `m${at}`, chargeNanos: 1 });
    const top = counts.top();
    expect(top).toHaveLength(maxGroups + 1);
    expect(top.slice(0, 2).map(({ model }) => model)).toEqual(['m199', 'm198']);
    expect(top.at(-1)).toMatchObject({ model: null, isOther: true, counts: { chargeNanos: 11_325n } });
    const again = new GroupCounts('model');
    again.add(top);
    again.add(top);
    expect(again.top()).toHaveLength(maxGroups + 1);
    expect(again.top().at(-1)).toMatchObject({ isOther: true, counts: { requests: { completed: 22_650 } } });
  });

  test('have a bound while an interval is open: further pairs count together', () => {
    const counts = new GroupCounts('upstream,model');
    for (let at = 0; at < 3_000; at++) counts.count({ ...summary, model: `m${at}` });
    const groups = [...counts.all()];
    expect(groups).toHaveLength(1_001);
    expect(groups.at(-1)).toMatchObject({ isOther: true, counts: { requests: { completed: 2_000 } } });
  });

  test('have a model named other beside the group of all others', () => {
    const counts = new GroupCounts('model');
    counts.count({ ...summary, model: 'other' });
    counts.add([{ upstream: null, model: null, isOther: true, counts: noCounts() }]);
    expect(counts.top().map(({ model, isOther }) => [model, isOther])).toEqual([
      ['other', false],
      [null, true],
    ]);
  });
});

test('the quantiles of times that were counted within bounds are right to 3 %', () => {
  const times = Array.from({ length: 1_000 }, (_, at) => (at + 1) * 10);
  const counts = new GroupCounts('');
  for (const firstTextMs of times) counts.count({ ...summary, firstTextMs });
  const entries = Object.entries(counts.whole().firstTexts);
  const quantile = quantilesOf(entries.map(([bound, many]) => [Number(bound), many] as const));
  for (const share of [0.5, 0.95, 0.99, 1]) {
    const exact = times[Math.ceil(share * times.length) - 1] ?? 0;
    expect(Math.abs((quantile(share) ?? 0) - exact) / exact).toBeLessThan(0.03);
  }
  expect(quantilesOf([])(0.5)).toBeNull();
});
