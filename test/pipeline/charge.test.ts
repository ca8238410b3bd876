import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/money/consumption.ts';
import { costOf } from '../../src/domain/money/pricing.ts';
import type { ModelPrice } from '../../src/domain/money/pricing.ts';
import { disconnectTable, settlementTable } from '../../src/domain/money/settlement.ts';
import type { OnDisconnect } from '../../src/domain/routing.ts';
import type { ChargeBasis, Progress } from '../../src/domain/money/settlement.ts';
import { chargeFor } from '../../src/pipeline/money/charge.ts';
import { AttemptLog } from '../../src/pipeline/attempts/attempt-log.ts';
import { ReceivedAnswer } from '../../src/pipeline/attempts/received-answer.ts';
import type { TokenCeiling } from '../../src/pipeline/stages.ts';
import type { Usage } from '../../src/protocol/text.ts';
import { TextSample } from '../../src/protocol/kept-text.ts';
import { modelPrice } from '../support/model-price.ts';
import { localRoute, localSource, usualSettings } from '../support/model-source.ts';
import { plainUsage as usage } from '../support/answers.ts';

const price = modelPrice({ input: 1_000_000, cachedInput: 500_000, output: 2_000_000 });
type Charged = Parameters<typeof chargeFor>[1];
type ChargePorts = Parameters<typeof chargeFor>[2];
const portsIn = (balanceMode: 'soft' | 'strict'): ChargePorts => ({
  balanceMode,
  tokens: { count: async (text) => text.length },
  telemetry: {
    waitBegan: () => {},
    waitEnded: () => {},
    exchangeBegan: () => {},
    streamOpened: () => {},
    exchangeEnded: () => {},
    fault: (message, error) => expect.unreachable(`${message}: ${String(error)}`),
  },
});
const ports = portsIn('soft');

/** Every outcome; those of a client that disconnects or cancels, with every `onDisconnect`. */
const cases: readonly (readonly [Outcome, OnDisconnect])[] = [
  ...(Object.keys(settlementTable) as Outcome[]).map((outcome) => [outcome, 'free'] as const),
  ...(Object.keys(disconnectTable) as OnDisconnect[]).flatMap((rule) =>
    (['client_closed', 'cancelled'] as const).map((outcome) => [outcome, rule] as const),
  ),
];

/** A request for each progress, and the output tokens counted for it: one token per character. */
const progresses: Readonly<Record<Progress, { request: Asked; output: number }>> = {
  none: { request: { stream: true }, output: 0 },
  awaited: { request: { stream: false, isAwaited: true }, output: 0 },
  unsent: { request: { stream: true, thoughts: 'hm, hm' }, output: 6 },
  sent: { request: { stream: true, text: 'answer' }, output: 6 },
};

/** Every cell of the table: case, progress of the answer, whether usage is known, and the basis of the charge. */
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

/** A request and the state of its answer, as a test describes them. */
interface Asked {
  readonly stream: boolean;
  readonly isAwaited?: boolean;
  readonly text?: string | readonly string[];
  readonly thoughts?: string;
  readonly named?: ReceivedAnswer['named'];
  readonly holdNanos?: number;
  readonly onDisconnect?: OnDisconnect;
  readonly price?: ModelPrice;
  readonly ceiling?: TokenCeiling;
}

function recordedText(asked: Asked): Charged {
  const { stream, isAwaited = false, text = [], thoughts = '', holdNanos = null } = asked;
  const received = new ReceivedAnswer();
  if (isAwaited) received.awaitWhole();
  const sampled = new TextSample();
  sampled.add(thoughts);
  received.reads({ thoughts: sampled, named: asked.named ?? null });
  received.add(typeof text === 'string' ? [text] : text, 0);
  const attempts = new AttemptLog();
  attempts.begin(localSource.upstream, 'tiny', 0);
  const route = { ...localRoute, onDisconnect: asked.onDisconnect ?? 'estimate' };
  const model = {
    ...usualSettings,
    id: 'small',
    routes: [route],
    price: asked.price ?? price,
    holdTokens: 1,
  };
  const request = {
    model: 'small',
    turns: [{ role: 'user', text: 'hello' }],
    stream,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens: null,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: [],
  } as const;
  return {
    work: { kind: 'text', request, model, routes: [route], received, ceiling: asked.ceiling ?? null },
    attempts,
    reservation: { granted: true, holdNanos, balanceNanos: null },
  };
}

function end(outcome: Outcome, used: Usage | null = null, passedStatus: number | null = null) {
  return { outcome, usage: used, passedStatus };
}

describe('the settlement table', () => {
  test('has a cell for every outcome', () => {
    expect(cells).toHaveLength((12 + 2 * 3) * 4 * 2);
  });

  test.each(cells)(
    'for %s (onDisconnect: %s), answer: %s, usage known: %s, charges by %s',
    async (outcome, rule, progress, known, basis) => {
      const { request, output } = progresses[progress];
      const recorded = recordedText({ ...request, onDisconnect: rule });
      const charge = await chargeFor(end(outcome, known ? usage : null), recorded, ports);
      const counted = { inputTokens: 5 + 4, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: output };
      const cost = { nothing: 0, upstream: costOf(usage, price), counted: costOf(counted, price) };
      expect(charge.chargeNanos).toBe(cost[basis]);
      const source = { nothing: known ? 'upstream' : 'none', upstream: 'upstream', counted: 'counted' };
      expect(charge.usageSource).toBe(source[basis]);
    },
  );

  test('charges unsent text of a whole answer only if the client disconnected', async () => {
    const recorded = recordedText({ stream: false, text: 'answer' });
    const broken = await chargeFor(end('upstream_truncated'), recorded, ports);
    expect(broken.chargeNanos).toBe(0);
    const left = await chargeFor(end('client_closed'), recorded, ports);
    expect(left).toMatchObject({ usageSource: 'counted', chargeNanos: 9 + 6 * 2 });
  });
});

describe('a passthrough request', () => {
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
    'with outcome %s costs %i after the head of a good answer, and nothing before it or after an error’s head',
    async (outcome, nanos) => {
      const work = {
        kind: 'passthrough',
        path: '/p',
        upstream: 'local',
        price: { ...price, request: 50 },
      } as const;
      const recorded = { ...recordedText({ stream: false }), work };
      const charges = [200, 399, 400, null].map(
        async (status) => (await chargeFor(end(outcome, null, status), recorded, ports)).chargeNanos,
      );
      expect(await Promise.all(charges)).toEqual([nanos, nanos, 0, 0]);
    },
  );
});

describe('our own token count', () => {
  const request = { stream: true, text: 'answer', thoughts: 'hm', holdNanos: 5 };

  test('is charged in full in soft mode, above the hold, with thoughts as output', async () => {
    const charge = await chargeFor(end('client_closed'), recordedText(request), ports);
    expect(charge).toMatchObject({
      usage: {
        inputTokens: 9,
        cachedInputTokens: 0,
        cacheWriteTokens: 0,
        outputTokens: 8,
        reasoningTokens: 2,
        totalTokens: 17,
      },
      usageSource: 'counted',
      chargeNanos: 9 + 8 * 2,
    });
  });

  test('is charged up to the hold in strict mode', async () => {
    const charge = await chargeFor(end('client_closed'), recordedText(request), portsIn('strict'));
    expect(charge).toMatchObject({ usageSource: 'counted', chargeNanos: 5 });
  });

  test.each(['soft', 'strict'] as const)(
    'does not replace the upstream’s count, which is charged in %s mode even above the hold',
    async (mode) => {
      const charge = await chargeFor(end('completed', usage), recordedText(request), portsIn(mode));
      expect(charge.chargeNanos).toBe(costOf(usage, price));
    },
  );

  test('is extrapolated for a text that is too long to be kept and counted in full', async () => {
    const parts = Array.from({ length: 10 }, (_, index) => (index === 0 ? 'x' : 'y').repeat(200_000));
    const recorded = recordedText({ ...request, text: parts });
    if (recorded.work.kind !== 'text') throw new Error('no request for text');
    const { text: long } = recorded.work.received;
    expect(long).toMatchObject({ chars: 2_000_000 });
    expect(long.beginning).toHaveLength(262_144);
    const charge = await chargeFor(end('completed'), recorded, ports);
    expect(charge.usage?.outputTokens).toBe(2_000_002);
  });
});

describe('an upstream’s count under a ceiling of costs', () => {
  const reported: Usage = {
    inputTokens: 11,
    cachedInputTokens: 5,
    cacheWriteTokens: 4,
    outputTokens: 7,
    reasoningTokens: 6,
    totalTokens: 18,
  };
  const chargeUnder = async (inputTokens: number, outputTokens: number) => {
    const faults: string[] = [];
    const fault = (message: string, error: unknown): void => void faults.push(`${message}: ${String(error)}`);
    const recorded = recordedText({ stream: true, text: 'answer', ceiling: { inputTokens, outputTokens } });
    const told = { ...ports, telemetry: { ...ports.telemetry, fault } };
    return { charge: await chargeFor(end('completed', reported), recorded, told), faults };
  };

  test('is charged as it is up to the ceiling', async () => {
    const { charge, faults } = await chargeUnder(11, 7);
    expect([charge.usage, charge.chargeNanos, faults]).toEqual([reported, costOf(reported, price), []]);
  });

  test.each([
    ['output', 11, 5, { outputTokens: 5, reasoningTokens: 5, totalTokens: 16 }],
    ['input', 6, 7, { inputTokens: 6, cacheWriteTokens: 1, totalTokens: 13 }],
    [
      'input that was cached',
      3,
      7,
      { inputTokens: 3, cachedInputTokens: 3, cacheWriteTokens: 0, totalTokens: 10 },
    ],
  ])('is not charged for more %s, and the operator is told', async (_what, input, output, cut) => {
    const { charge, faults } = await chargeUnder(input, output);
    const used = { ...reported, ...cut };
    expect([charge.usage, charge.chargeNanos]).toEqual([used, costOf(used, price)]);
    expect(faults).toEqual([
      'more tokens from an upstream than the ceiling of its request pays for: not charged: ' +
        'Error: local: 11 of input and 7 of output',
    ]);
  });
});

describe('a long input', () => {
  const above = { ...modelPrice({ input: 10_000_000, output: 20_000_000 }), inputTokens: 10 };
  const longPrice = { ...price, above };

  test.each([
    [10, 10 + 7 * 2, 1_000_000],
    [11, 11 * 10 + 7 * 20, 10_000_000],
  ])('of %i tokens is billed entirely by its line of the price', async (inputTokens, nanos, input) => {
    const recorded = recordedText({ stream: true, text: 'answer', price: longPrice });
    const charge = await chargeFor(end('completed', { ...usage, inputTokens }), recorded, ports);
    expect(charge).toMatchObject({ chargeNanos: nanos, price: { input } });
  });
});
