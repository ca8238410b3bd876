import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countRefusals } from '../../src/background/count-refusals.ts';
import type { RefusedRequests } from '../../src/domain/ports/refusals.ts';
import { refuse } from '../../src/shared/errors.ts';
import type { Refusal } from '../../src/shared/errors.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';

const dayMs = 86_400_000;
const retry = { limit: 1, retryAfterMs: 1 } as const;
const budget = { amount: '1', refillsAt: '' } as const;

/** Each of this gateway's own limits, with a refusal of it. */
const own: Readonly<Record<string, Refusal>> = {
  concurrency: refuse('concurrency_limit_exceeded', '', {
    limit: { ...retry, source: 'key', kind: 'concurrency' },
  }),
  group_concurrency: refuse('concurrency_limit_exceeded', '', {
    limit: { ...retry, source: 'group', kind: 'concurrency' },
  }),
  rate: refuse('rate_limit_exceeded', '', { limit: { ...retry, source: 'key', kind: 'rate' } }),
  tokens: refuse('rate_limit_exceeded', '', { limit: { ...retry, source: 'key', kind: 'tokens' } }),
  queue: refuse('upstream_busy', '', { limit: { ...retry, source: 'upstream', kind: 'queue' } }),
  balance: refuse('insufficient_balance', ''),
  held: refuse('balance_held', ''),
  budget: refuse('budget_exhausted', '', { budget: { ...budget, source: 'key' } }),
  group_budget: refuse('budget_exhausted', '', { budget: { ...budget, source: 'group' } }),
  budget_held: refuse('budget_held', '', { budget: { ...budget, source: 'key' } }),
  group_budget_held: refuse('budget_held', '', { budget: { ...budget, source: 'group' } }),
};

/** Refusals that no limit of this gateway is the reason of. */
const others = [
  refuse('upstream_rate_limited', '', { limit: { ...retry, source: 'upstream', kind: 'rate' } }),
  refuse('invalid_value', ''),
  refuse('upstream_error', ''),
];

/** A counter over a database that may be away. */
async function start() {
  const clock = createFakeClock(Date.UTC(2030, 0, 31, 23, 59, 50));
  const sums = new Map<string, number>();
  const faults: string[] = [];
  const state = { isAway: false, units: 0 };
  const counter = countRefusals(
    {
      async add(refused: readonly RefusedRequests[]) {
        if (state.isAway) throw new Error('the database is away');
        state.units++;
        for (const { dayMs: day, keyId, limit, requests } of refused) {
          const name = `${day} ${keyId} ${limit}`;
          sums.set(name, (sums.get(name) ?? 0) + requests);
        }
      },
    },
    { ready: Promise.resolve(), clock, onFault: (message) => void faults.push(message) },
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  return {
    counter,
    state,
    sums,
    faults,
    clock,
    later: async (ms: number) => {
      clock.advance(ms);
      await settle();
    },
  };
}

describe('the count of refused requests', () => {
  test('adds up to the refusals that were sent, by day, key and limit, however often the database is away', async () => {
    const step = fc.oneof(
      fc.record({ keyId: fc.constantFrom('a', 'b'), limit: fc.constantFrom(...Object.keys(own)) }),
      fc.record({ waitMs: fc.nat({ max: 12_000 }) }),
      fc.record({ isAway: fc.boolean() }),
      fc.record({ other: fc.constantFrom(...others) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { counter, state, sums, clock, later } = await start();
        const sent = new Map<string, number>();
        for (const one of steps) {
          if ('waitMs' in one) await later(one.waitMs);
          else if ('isAway' in one) state.isAway = one.isAway;
          else if ('other' in one) counter.exchangeEnded({ keyId: 'a', refusal: one.other });
          else {
            const { keyId, limit } = one;
            counter.exchangeEnded({ keyId, refusal: own[limit] ?? null });
            const name = `${Math.floor(clock.now() / dayMs) * dayMs} ${keyId} ${limit}`;
            sent.set(name, (sent.get(name) ?? 0) + 1);
          }
        }
        state.isAway = false;
        await counter.stop();
        expect(Object.fromEntries(sums)).toEqual(Object.fromEntries(sent));
      }),
      propertyRun(100),
    );
  });

  test('is added every five seconds, in one unit for all keys, and not at all where nothing was refused', async () => {
    const { counter, state, sums, later } = await start();
    await later(60_000);
    expect(state.units).toBe(0);
    for (let at = 0; at < 400; at++)
      counter.exchangeEnded({ keyId: `key ${at % 40}`, refusal: own['rate'] ?? null });
    await later(5_000);
    expect([state.units, sums.size]).toEqual([1, 40]);
    counter.exchangeEnded({ keyId: null, refusal: own['rate'] ?? null });
    counter.exchangeEnded({ keyId: 'a', refusal: null });
    await counter.stop();
    expect(state.units).toBe(1);
  });

  test('has a bound while the database is away, and says what it lost', async () => {
    const { counter, state, sums, faults, later } = await start();
    state.isAway = true;
    for (let at = 0; at < 25_000; at++)
      counter.exchangeEnded({ keyId: `key ${at}`, refusal: own['rate'] ?? null });
    await later(5_000);
    expect(faults).toEqual([
      'refused requests could not be added to the sums of their keys',
      'refused requests not counted for their keys',
    ]);
    state.isAway = false;
    await counter.stop();
    expect(sums.size).toBe(20_000);
  });
});
