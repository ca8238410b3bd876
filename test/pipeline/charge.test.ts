import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/consumption.ts';
import { costOf } from '../../src/domain/pricing.ts';
import { departureTable, settlementTable } from '../../src/domain/settlement.ts';
import type { OnDisconnect } from '../../src/domain/routing.ts';
import type { ChargeBasis } from '../../src/domain/settlement.ts';
import { chargeFor } from '../../src/pipeline/charge.ts';
import type { Exchange, Ports } from '../../src/pipeline/exchange.ts';

const price = { input: 1_000_000, cachedInput: 500_000, output: 2_000_000 };
const usage = { inputTokens: 11, cachedInputTokens: 0, outputTokens: 7, reasoningTokens: 0, totalTokens: 18 };
/** Our own count of the question and of the answer below: one token per character. */
const counted = { inputTokens: 5 + 4, cachedInputTokens: 0, outputTokens: 6 };
const ports = { tokens: { count: async (text: string) => text.length } } as unknown as Ports;

/** Every outcome, and those of a client that leaves or cancels by what its upstream's `onDisconnect` says. */
const cases: readonly (readonly [Outcome, OnDisconnect])[] = [
  ...(Object.keys(settlementTable) as Outcome[]).map((outcome) => [outcome, 'free'] as const),
  ...(Object.keys(departureTable) as OnDisconnect[]).flatMap((rule) =>
    (['client_closed', 'cancelled'] as const).map((outcome) => [outcome, rule] as const),
  ),
];

/** Every cell, written out: case, whether text was sent, whether usage is known, and what is charged by. */
const cells = cases.flatMap(([outcome, rule]) => {
  const isFinished = outcome === 'completed' || outcome === 'incomplete';
  const isGiven = (outcome === 'client_closed' || outcome === 'cancelled') && rule === 'free';
  const isOurs = outcome === 'refused' || outcome === 'lost' || outcome === 'server_error' || isGiven;
  return [true, false].flatMap((hasText) =>
    [true, false].map((usageKnown) => {
      const isPaid = isFinished || (hasText && !isOurs);
      const basis: ChargeBasis = isPaid ? (usageKnown ? 'upstream' : 'counted') : 'nothing';
      return [outcome, rule, hasText, usageKnown, basis] as const;
    }),
  );
});

function exchangeWith(
  text: string,
  holdNanos: number | null,
  stream = true,
  onDisconnect = 'estimate',
): Exchange {
  const request = { turns: [{ role: 'user', text: 'hello' }] };
  const route = { onDisconnect };
  return { notes: { model: { price }, route, request, text, stream, holdNanos } } as unknown as Exchange;
}

describe('a request is charged by the settlement table', () => {
  test('which has a cell for every outcome', () => {
    expect(cells).toHaveLength((11 + 2 * 3) * 4);
  });

  test.each(cells)(
    '%s (onDisconnect: %s), text sent: %s, usage known: %s is charged by %s',
    async (outcome, rule, hasText, known, basis) => {
      const exchange = exchangeWith(hasText ? 'answer' : '', null, true, rule);
      const charge = await chargeFor(outcome, known ? usage : null, exchange, ports);
      const input = { nothing: 0, upstream: costOf(usage, price), counted: costOf(counted, price) };
      const withoutText = costOf({ ...counted, outputTokens: 0 }, price);
      expect(charge.chargeNanos).toBe(basis === 'counted' && !hasText ? withoutText : input[basis]);
      const source = { nothing: known ? 'upstream' : 'none', upstream: 'upstream', counted: 'counted' };
      expect(charge.usageSource).toBe(source[basis]);
    },
  );
});

describe('what is counted by ourselves', () => {
  test('costs no more than was held', async () => {
    const charge = await chargeFor('client_closed', null, exchangeWith('answer', 5), ports);
    expect(charge).toMatchObject({ usageSource: 'counted', chargeNanos: 5 });
  });

  test('but what the upstream counted is the true price, whatever was held', async () => {
    const charge = await chargeFor('completed', usage, exchangeWith('answer', 5), ports);
    expect(charge.chargeNanos).toBe(costOf(usage, price));
  });
});

test('a whole answer that broke off was never sent, so it costs nothing', async () => {
  const charge = await chargeFor('client_closed', usage, exchangeWith('answer', null, false), ports);
  expect(charge).toEqual({ usage, usageSource: 'upstream', chargeNanos: 0 });
});
