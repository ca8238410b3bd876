import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/consumption.ts';
import { costOf } from '../../src/domain/pricing.ts';
import { disconnectTable, settlementTable } from '../../src/domain/settlement.ts';
import type { OnDisconnect } from '../../src/domain/routing.ts';
import type { ChargeBasis, Progress } from '../../src/domain/settlement.ts';
import { chargeFor } from '../../src/pipeline/charge.ts';
import type { Exchange, Ports } from '../../src/pipeline/exchange.ts';
import { TextSample } from '../../src/protocol/text-sample.ts';
import { modelPrice } from '../support/model-price.ts';

const price = modelPrice({ input: 1_000_000, cachedInput: 500_000, output: 2_000_000 });
const usage = {
  inputTokens: 11,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 7,
  reasoningTokens: 0,
  totalTokens: 18,
};
const portsIn = (balanceMode: 'soft' | 'strict'): Ports =>
  ({ balanceMode, tokens: { count: async (text: string) => text.length } }) as unknown as Ports;
const ports = portsIn('soft');

/** Every outcome, and those of a client that leaves or cancels by what its upstream's `onDisconnect` says. */
const cases: readonly (readonly [Outcome, OnDisconnect])[] = [
  ...(Object.keys(settlementTable) as Outcome[]).map((outcome) => [outcome, 'free'] as const),
  ...(Object.keys(disconnectTable) as OnDisconnect[]).flatMap((rule) =>
    (['client_closed', 'cancelled'] as const).map((outcome) => [outcome, rule] as const),
  ),
];

/** What a request has to show for each progress, and what is counted of its answer: a token per character. */
const progresses: Readonly<Record<Progress, { notes: object; output: number }>> = {
  none: { notes: { stream: true, awaitsWhole: false }, output: 0 },
  awaited: { notes: { stream: false, awaitsWhole: true }, output: 0 },
  unsent: { notes: { stream: true, awaitsWhole: false, thoughts: sample('hm, hm') }, output: 6 },
  sent: { notes: { stream: true, awaitsWhole: false, text: sample('answer') }, output: 6 },
};

/** Every cell, written out: case, how far the answer had come, whether usage is known, and what is charged by. */
const cells = cases.flatMap(([outcome, rule]) => {
  const isFinished = outcome === 'completed' || outcome === 'incomplete';
  const isDeparture = outcome === 'client_closed' || outcome === 'cancelled';
  const isOurs = outcome === 'refused' || outcome === 'lost' || outcome === 'server_error';
  return (['none', 'awaited', 'unsent', 'sent'] as const).flatMap((progress) => {
    const isPaid =
      isFinished || (isDeparture ? rule !== 'free' && progress !== 'none' : !isOurs && progress === 'sent');
    return [true, false].map((usageKnown) => {
      const basis: ChargeBasis = isPaid ? (usageKnown ? 'upstream' : 'counted') : 'nothing';
      return [outcome, rule, progress, usageKnown, basis] as const;
    });
  });
});

function sample(text: string): TextSample {
  const sampled = new TextSample();
  sampled.add(text);
  return sampled;
}

function exchangeWith(notes: object, onDisconnect = 'estimate'): Exchange {
  const request = { turns: [{ role: 'user', text: 'hello' }] };
  const route = { onDisconnect };
  const nothing = { text: sample(''), thoughts: null, holdNanos: null, passedPrice: null };
  return { notes: { model: { price }, route, request, ...nothing, ...notes } } as unknown as Exchange;
}

describe('a request is charged by the settlement table', () => {
  test('which has a cell for every outcome', () => {
    expect(cells).toHaveLength((12 + 2 * 3) * 4 * 2);
  });

  test.each(cells)(
    '%s (onDisconnect: %s), answer: %s, usage known: %s is charged by %s',
    async (outcome, rule, progress, known, basis) => {
      const { notes, output } = progresses[progress];
      const exchange = exchangeWith(notes, rule);
      const charge = await chargeFor(outcome, known ? usage : null, exchange, ports);
      const counted = { inputTokens: 5 + 4, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: output };
      const cost = { nothing: 0, upstream: costOf(usage, price), counted: costOf(counted, price) };
      expect(charge.chargeNanos).toBe(cost[basis]);
      const source = { nothing: known ? 'upstream' : 'none', upstream: 'upstream', counted: 'counted' };
      expect(charge.usageSource).toBe(source[basis]);
    },
  );

  test('and text of a whole answer that never went out is paid for by a client that left, and by no other', async () => {
    const exchange = exchangeWith({ stream: false, awaitsWhole: false, text: sample('answer') });
    const broken = await chargeFor('upstream_truncated', null, exchange, ports);
    expect(broken.chargeNanos).toBe(0);
    const left = await chargeFor('client_closed', null, exchange, ports);
    expect(left).toMatchObject({ usageSource: 'counted', chargeNanos: 9 + 6 * 2 });
  });
});

describe('a request that is passed on', () => {
  const spoiled = new Set<Outcome>([
    'upstream_failed',
    'upstream_truncated',
    'first_byte_timeout',
    'idle_timeout',
    'lost',
    'server_error',
  ]);
  const outcomes = [...Object.keys(settlementTable), 'client_closed', 'cancelled'] as Outcome[];

  test.each(outcomes.map((outcome) => [outcome, spoiled.has(outcome) ? 0 : 50] as const))(
    'and is %s costs %i after the head of a good answer, and nothing before it or after that of an error',
    async (outcome, nanos) => {
      const passedPrice = { ...price, request: 50 };
      const charges = [200, 399, 400, null].map(async (passedStatus) => {
        const exchange = exchangeWith({ passedPrice, passedStatus });
        return (await chargeFor(outcome, null, exchange, ports)).chargeNanos;
      });
      expect(await Promise.all(charges)).toEqual([nanos, nanos, 0, 0]);
    },
  );
});

describe('what is counted by ourselves', () => {
  const notes = { stream: true, text: sample('answer'), thoughts: sample('hm'), holdNanos: 5 };

  test('costs what it costs in soft mode, whatever was held, with thoughts as output', async () => {
    const charge = await chargeFor('client_closed', null, exchangeWith(notes), ports);
    expect(charge).toMatchObject({
      usage: { inputTokens: 9, outputTokens: 8, reasoningTokens: 2 },
      usageSource: 'counted',
      chargeNanos: 9 + 8 * 2,
    });
  });

  test('costs no more than was held in strict mode', async () => {
    const charge = await chargeFor('client_closed', null, exchangeWith(notes), portsIn('strict'));
    expect(charge).toMatchObject({ usageSource: 'counted', chargeNanos: 5 });
  });

  test.each(['soft', 'strict'] as const)(
    'is not what the upstream counted, which is the true price in %s mode, whatever was held',
    async (mode) => {
      const charge = await chargeFor('completed', usage, exchangeWith(notes), portsIn(mode));
      expect(charge.chargeNanos).toBe(costOf(usage, price));
    },
  );

  test('is extrapolated where a text is too long to be counted, and kept, as a whole', async () => {
    const long = sample('x'.repeat(200_000));
    for (let part = 0; part < 9; part++) long.add('y'.repeat(200_000));
    expect(long).toMatchObject({ chars: 2_000_000, bytes: 2_000_000 });
    expect(long.beginning).toHaveLength(262_144);
    const charge = await chargeFor('completed', null, exchangeWith({ ...notes, text: long }), ports);
    expect(charge.usage?.outputTokens).toBe(2_000_002);
  });
});

describe('a long input', () => {
  const above = { ...modelPrice({ input: 10_000_000, output: 20_000_000 }), inputTokens: 10 };
  const model = { price: { ...price, above } };

  test.each([
    [10, 10 + 7 * 2, 1_000_000],
    [11, 11 * 10 + 7 * 20, 10_000_000],
  ])('of %i tokens is billed as a whole by its line of the price', async (inputTokens, nanos, input) => {
    const exchange = exchangeWith({ model, stream: true, text: sample('answer') });
    const charge = await chargeFor('completed', { ...usage, inputTokens }, exchange, ports);
    expect(charge).toMatchObject({ chargeNanos: nanos, price: { input } });
  });
});
