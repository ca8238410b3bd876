import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { refuse } from '../../src/shared/errors.ts';
import type { Refusal } from '../../src/shared/errors.ts';
import type { UpstreamAnswer, UpstreamFault } from '../../src/domain/ports/upstreams.ts';
import { free } from '../../src/domain/money/pricing.ts';
import type { AnswerFacts } from '../../src/domain/shadows/compare-answers.ts';
import { ShadowBook } from '../../src/domain/shadows/shadow-book.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import type { Exchange } from '../../src/pipeline/exchange.ts';
import { MemoryUpstreamLimiters } from '../../src/coordination/upstream-limiter/memory-upstream-limiters.ts';
import type { LimiterSettings } from '../../src/domain/ports/upstream-limiters.ts';
import { InFlight } from '../../src/pipeline/in-flight.ts';
import { createShadows } from '../../src/pipeline/shadows/shadows.ts';
import { bodyOf } from '../support/body-of.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { localRoute } from '../support/model-source.ts';
import { at, limiterSettings } from '../support/limiter-scene.ts';
import { chatFrames } from '../support/scripted-upstream.ts';

const request = {
  turns: [{ role: 'user', text: 'x' }],
  stream: true,
  maxOutputTokens: null,
  stop: [],
} as const;
const answer: AnswerFacts = {
  outcome: 'completed',
  finishReason: 'stop',
  characters: 5,
  firstTextMs: 1,
  totalMs: 1,
  costNanos: 0,
};
/** A secret in a form of its own, which only the request's own header tells to be one. */
const clientKey = 'the words of a declared key';

/** The shadows of one model over an upstream that answers as `answers` says, one call after the other. */
function open(
  answers: readonly (() => UpstreamAnswer | UpstreamFault | Promise<UpstreamAnswer>)[] = [],
  limits: LimiterSettings | null = null,
) {
  const clock = createFakeClock();
  const events: string[] = [];
  const book = new ShadowBook(clock, {
    skipped: (_model, reason) => void events.push(`skipped: ${reason}`),
    ended: (_model, outcome) => void events.push(outcome),
    compared: (_model, { verdict }) => void events.push(`compared: ${verdict}`),
  });
  const health = new UpstreamHealth(clock);
  const inFlight = new InFlight();
  const upstreamLimiters = new MemoryUpstreamLimiters(
    clock,
    new Map(limits === null ? [] : [['other', limits]]),
  );
  const freshness: boolean[] = [];
  const route = {
    model: 'small',
    route: { ...localRoute, upstream: 'other' },
    share: 1,
    price: free,
    budgetNanos: null,
    maxInFlight: 2,
    holdTokens: 16,
  };
  book.configure([route]);
  const shadows = createShadows([route], {
    clock,
    health,
    inFlight,
    book,
    random: () => 0.5,
    fastPath: false,
    upstreamLimiters,
    telemetry: {
      waitBegan() {},
      waitEnded() {},
      exchangeBegan() {},
      streamOpened() {},
      exchangeEnded() {},
      fault: (message) => void events.push(message),
    },
    upstreams: {
      async call({ fresh }, signal) {
        freshness.push(fresh);
        const next = answers[freshness.length - 1];
        if (next !== undefined) return next();
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve({ kind: 'fault', fault: 'interrupted' }));
        });
      },
    },
  });
  /** Begins the shadow of a request whose record is begun, or refused, when `recorded` is called. */
  const begin = () => {
    const recording = Promise.withResolvers<Refusal | null>();
    const exchange = {
      stage: { stage: 'arrived' },
      client: { authorization: `Bearer ${clientKey}` },
      interruption: new AbortController(),
      shadow: null,
    } as unknown as Exchange;
    shadows.begin('small', request, recording.promise, exchange);
    return {
      exchange,
      recorded: async (refusal: Refusal | null = null): Promise<void> => {
        recording.resolve(refusal);
        await setImmediate();
      },
    };
  };
  return { clock, events, book, upstreamLimiters, health, inFlight, shadows, freshness, begin };
}

/** An answer with these pieces of a body. */
function say(pieces: readonly string[], released: { count: number } = { count: 0 }): UpstreamAnswer {
  const left = pieces.map((piece) => Buffer.from(piece));
  return {
    kind: 'answer',
    status: 200,
    contentType: 'text/event-stream',
    retryAfterMs: null,
    ...bodyOf(async () => left.shift() ?? null),
    release: () => void released.count++,
  };
}

const stale = (): UpstreamFault => ({ kind: 'fault', fault: 'stale' });

describe('a shadow is not sent', () => {
  test('before the record of its request is begun, nor if that is refused', async () => {
    const { begin, freshness } = open();
    const [first, second] = [begin(), begin()];
    await setImmediate();
    expect(freshness).toEqual([]);
    await first.recorded(refuse('insufficient_balance', 'no'));
    expect(freshness).toEqual([]);
    await second.recorded();
    expect(freshness).toEqual([false]);
  });

  test('if the client left, the request ended, or draining began before that', async () => {
    const { begin, freshness, inFlight, events } = open();
    const [left, over, drained] = [begin(), begin(), begin()];
    left.exchange.interruption.abort('client_closed');
    await left.recorded();
    over.exchange.shadow?.requestEnded('crashed');
    await over.recorded();
    void inFlight.drained();
    await drained.recorded();
    expect([freshness, events]).toEqual([[], []]);
    expect(begin().exchange.shadow).toBeNull();
  });

  test('to an upstream that fails for clients', async () => {
    const { begin, freshness, health, events } = open();
    health.began({ upstream: 'other', model: 'tiny' }, null).ended('busy', 5_000);
    await begin().recorded();
    expect([freshness, events]).toEqual([[], ['skipped: upstream']]);
  });
});

test('a shadow that is stopped after its request ended is compared with nothing', async () => {
  const { begin, shadows, events } = open();
  const { exchange, recorded } = begin();
  await recorded();
  exchange.shadow?.requestEnded(answer);
  exchange.shadow?.requestEnded('crashed');
  await setImmediate();
  expect(events).toEqual([]);
  await shadows.close();
  expect(events).toEqual(['drained']);
});

test('a closed connection is tried once more, on a new one; the answer is released at its end', async () => {
  const released = { count: 0 };
  const { begin, shadows, events, freshness } = open([stale, () => say(chatFrames(['Hello']), released)]);
  const { exchange, recorded } = begin();
  await recorded();
  await shadows.idle();
  exchange.shadow?.requestEnded(answer);
  expect([freshness, events, released.count]).toEqual([[false, true], ['completed', 'compared: same'], 1]);
});

test('a second closed connection is a failure', async () => {
  const { begin, shadows, events, freshness } = open([stale, stale]);
  await begin().recorded();
  await shadows.idle();
  expect([freshness.length, events]).toEqual([2, ['upstream_failed']]);
});

test("the client's key is hidden in what the provider says", async () => {
  const { begin, shadows, book } = open([
    () => ({ ...say([JSON.stringify({ error: { message: `bad: ${clientKey}!` } })]), status: 400 }),
  ]);
  await begin().recorded();
  await shadows.idle();
  const [view] = book.views();
  expect(view?.counts.lastFailure?.upstreamError?.message).toMatch(/^bad: \[/);
  expect(JSON.stringify(view)).not.toContain(clientKey);
});

describe('a shadow at an upstream with limits', () => {
  const oneAtATime = limiterSettings({ maxInFlight: 1, queue: 10, queueWaitMs: 60_000 });
  const asked = {
    requestId: 'x',
    keyId: 'x',
    weight: 1,
    targets: [at('other')],
    tokens: { input: 1, output: 1 },
    waitedMs: 0,
  };

  test('waits in no queue: without a free permit it is left out', async () => {
    const { begin, shadows, events, freshness, upstreamLimiters, book } = open([], oneAtATime);
    await begin().recorded();
    await begin().recorded();
    expect([freshness.length, events]).toEqual([1, ['skipped: permit']]);
    expect(upstreamLimiters.views()).toMatchObject([{ inFlight: 1, waiting: 0 }]);
    const client = upstreamLimiters.acquire(asked, new AbortController().signal);
    await shadows.close();
    expect(await client).toMatchObject({ kind: 'acquired' });
    expect(book.views()).toMatchObject([{ running: 0, budget: { heldNanos: 0 } }]);
  });

  test('releases its permit, also after two closed connections, and where its own bounds stop it', async () => {
    const { begin, shadows, upstreamLimiters, book, freshness } = open([stale, stale], oneAtATime);
    await begin().recorded();
    await shadows.idle();
    expect([freshness, upstreamLimiters.views()]).toMatchObject([[false, true], [{ inFlight: 0 }]]);
    book.configure([]);
    await begin().recorded();
    expect([freshness.length, upstreamLimiters.views()]).toMatchObject([2, [{ inFlight: 0 }]]);
  });
});

test('an error of this service ends the shadow, and releases its permit', async () => {
  const { begin, shadows, events, book } = open([
    () => {
      throw new Error('x');
    },
  ]);
  await begin().recorded();
  await shadows.idle();
  await setImmediate();
  expect(events).toEqual(['shadow request failed unexpectedly', 'server_error']);
  expect(book.views()).toMatchObject([{ running: 0, budget: { heldNanos: 0 } }]);
});
