import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maxWaitingRequests } from '../../src/domain/limits/limits.ts';
import type { Limits } from '../../src/domain/limits/limits.ts';
import type { FollowingLimiter } from '../../src/domain/ports/limiter.ts';
import { propertyRun } from '../support/property-run.ts';

const minuteMs = 60_000;
const generous = 1_000;
const { signal } = new AbortController();

/** The limits of a key that is stored without limits of its own. */
export const defaultLimits: Limits = { concurrency: 4, requestsPerMinute: generous, queueWaitMs: 0 };

/** A limiter with the time that it judges by, which stands still until the test moves it on. */
export interface TestedLimiter {
  readonly limiter: FollowingLimiter;
  readonly monotonicMs: () => number;
  readonly advance: (durationMs: number) => void;
  /** Stores the limits that a key has of its own; it has the default ones beside them. Tells the limiter nothing. */
  readonly setLimits: (keyId: string, own: Partial<Limits>) => Promise<void>;
  /** Resolves when everything that was asked for is decided, or waits for a slot. */
  readonly settled: () => Promise<unknown>;
  readonly close: () => Promise<void> | void;
}

/** What every limiter must do, wherever it keeps its counts. `create` makes one that has counted nothing. */
export function describeLimiter(
  name: string,
  create: () => TestedLimiter | Promise<TestedLimiter>,
  { startsPerWindow = 5_000 }: { readonly startsPerWindow?: number } = {},
): void {
  /** A limiter, and starts that make up their own request ids. */
  const setUp = async (given: Omit<Limits, 'queueWaitMs'>) => {
    const limits = { ...given, queueWaitMs: 0 };
    const tested = await create();
    onTestFinished(() => tested.close());
    const { limiter } = tested;
    let count = 0;
    const start = (keyId = 'key') => limiter.acquire(keyId, `request-${count++}`, limits, signal);
    const verdicts = async (times: number, keyId?: string) => {
      const all = [];
      for (let i = 0; i < times; i++) all.push((await start(keyId)).verdict);
      return all;
    };
    return { ...tested, start, verdicts };
  };

  describe(`${name}: slots`, () => {
    test('grants no more slots than the limit, and grants a released slot again', async () => {
      const { limiter, start, verdicts } = await setUp({ concurrency: 2, requestsPerMinute: generous });
      expect(await verdicts(3)).toEqual(['granted', 'granted', 'concurrency']);
      await limiter.release('key', 'request-0');
      expect(await start()).toMatchObject({ verdict: 'granted', inFlight: 2 });
      expect(await start()).toMatchObject({ verdict: 'concurrency', inFlight: 2 });
    });

    test('frees one slot for a request, however often and however concurrently it is released', async () => {
      const { limiter, verdicts } = await setUp({ concurrency: 2, requestsPerMinute: generous });
      await verdicts(2);
      await Promise.all(Array.from({ length: 3 }, () => limiter.release('key', 'request-0')));
      await limiter.release('key', 'request-0');
      expect(await verdicts(2)).toEqual(['granted', 'concurrency']);
    });

    test('frees no slot for a request that holds none', async () => {
      const { limiter, verdicts } = await setUp({ concurrency: 1, requestsPerMinute: generous });
      await verdicts(1);
      await limiter.release('key', 'request-9');
      await limiter.release('other', 'request-0');
      expect(await verdicts(1)).toEqual(['concurrency']);
    });

    test('counts each key for itself', async () => {
      const { verdicts } = await setUp({ concurrency: 1, requestsPerMinute: 1 });
      expect(await verdicts(1, 'a')).toEqual(['granted']);
      expect(await verdicts(1, 'b')).toEqual(['granted']);
    });

    test('keeps the slot of a request for as long as it runs, however quiet the key is', async () => {
      const { advance, verdicts } = await setUp({ concurrency: 1, requestsPerMinute: generous });
      await verdicts(1);
      advance(10 * minuteMs);
      expect(await verdicts(1)).toEqual(['concurrency']);
    });

    test('grants no slot too many to requests that come at once', async () => {
      const { limiter } = await setUp({ concurrency: 3, requestsPerMinute: generous });
      const limits = { concurrency: 3, requestsPerMinute: generous, queueWaitMs: 0 };
      const decisions = await Promise.all(
        Array.from({ length: 50 }, (_, number) =>
          limiter.acquire('key', `at once ${number}`, limits, signal),
        ),
      );
      expect(decisions.filter(({ verdict }) => verdict === 'granted')).toHaveLength(3);
    });

    test('grants no start too many to requests that come at once', async () => {
      const { limiter } = await setUp({ concurrency: generous, requestsPerMinute: 5 });
      const limits = { concurrency: generous, requestsPerMinute: 5, queueWaitMs: 0 };
      const decisions = await Promise.all(
        Array.from({ length: 50 }, (_, number) =>
          limiter.acquire('key', `at once ${number}`, limits, signal),
        ),
      );
      expect(decisions.map(({ verdict }) => verdict).toSorted()).toEqual([
        ...Array<string>(5).fill('granted'),
        ...Array<string>(45).fill('rate'),
      ]);
    });

    test('counts no start for a request that it refuses', async () => {
      const { limiter, start, verdicts } = await setUp({ concurrency: 1, requestsPerMinute: 2 });
      expect(await verdicts(5)).toEqual(['granted', ...Array<string>(4).fill('concurrency')]);
      await limiter.release('key', 'request-0');
      expect(await start()).toMatchObject({ verdict: 'granted', remainingStarts: 0 });
    });
  });

  describe(`${name}: starts`, () => {
    test('grants all starts at once, and gives each back 60 seconds later, not sooner', async () => {
      const { advance, start, verdicts } = await setUp({ concurrency: generous, requestsPerMinute: 2 });
      expect(await start()).toMatchObject({ verdict: 'granted', remainingStarts: 1, resetMs: minuteMs });
      expect(await start()).toMatchObject({ verdict: 'granted', remainingStarts: 0, resetMs: minuteMs });
      advance(minuteMs - 1);
      expect(await start()).toMatchObject({ verdict: 'rate', remainingStarts: 0, resetMs: 1 });
      advance(1);
      expect(await verdicts(3)).toEqual(['granted', 'granted', 'rate']);
    });

    test('grants no double burst at the edge of a minute', async () => {
      const { advance, verdicts } = await setUp({ concurrency: generous, requestsPerMinute: 10 });
      advance(minuteMs - 1);
      expect(await verdicts(10)).toEqual(Array<string>(10).fill('granted'));
      advance(2);
      expect(await verdicts(10)).toEqual(Array<string>(10).fill('rate'));
    });

    test('counts a start for 60 seconds, even when its request has ended', async () => {
      const { advance, limiter, verdicts } = await setUp({ concurrency: 1, requestsPerMinute: 1 });
      advance(minuteMs - 1);
      await verdicts(1);
      await limiter.release('key', 'request-0');
      expect(await verdicts(1)).toEqual(['rate']);
      advance(minuteMs - 1);
      expect(await verdicts(1)).toEqual(['rate']);
    });

    test('gives starts back one by one, as they were used', async () => {
      const { advance, start, verdicts } = await setUp({ concurrency: generous, requestsPerMinute: 2 });
      await start();
      advance(40_000);
      await start();
      expect(await start()).toMatchObject({ verdict: 'rate', resetMs: 20_000 });
      advance(20_000);
      expect(await verdicts(2)).toEqual(['granted', 'rate']);
      expect(await start()).toMatchObject({ resetMs: 40_000 });
    });

    test('counts many starts of one key right over several windows', async () => {
      const { advance, limiter, start } = await setUp({ concurrency: 1, requestsPerMinute: 10_000 });
      const stepMs = minuteMs / startsPerWindow;
      for (let count = 0; count < 3 * startsPerWindow; count++) {
        const { remainingStarts, resetMs } = await start();
        const kept = Math.min(count + 1, startsPerWindow);
        expect([remainingStarts, resetMs]).toEqual([10_000 - kept, minuteMs - (kept - 1) * stepMs]);
        await limiter.release('key', `request-${count}`);
        advance(stepMs);
      }
    });
  });

  test(`${name}: decides any sequence of starts and releases as a naive count does`, async () => {
    const someLimits = fc.record({
      concurrency: fc.integer({ min: 1, max: 4 }),
      requestsPerMinute: fc.integer({ min: 1, max: 6 }),
      queueWaitMs: fc.constant(0),
    });
    await fc.assert(
      fc.asyncProperty(someLimits, fc.array(step, { maxLength: 40 }), async (limits, steps) => {
        const tested = await create();
        const { decided, expected } = await compareWithCount(tested, limits, steps);
        await tested.close();
        expect(decided).toEqual(expected);
      }),
      propertyRun(),
    );
  });

  describe(`${name}: a request that may wait for a slot`, () => {
    const limits = { concurrency: 1, requestsPerMinute: generous, queueWaitMs: 10_000 };

    /** A limiter whose one slot is taken, and requests that wait for it; `order` is how their waits ended. */
    async function setUpQueue() {
      const tested = await create();
      onTestFinished(() => tested.close());
      const order: string[] = [];
      const wait = async (id: string, leaving = signal, given = limits) => {
        const { verdict } = await tested.limiter.acquire('key', id, given, leaving);
        order.push(`${id} ${verdict}`);
      };
      return { ...tested, order, wait };
    }

    test('gets the next free slot in the order of arrival', async () => {
      const { limiter, order, wait, settled } = await setUpQueue();
      for (const id of ['a', 'b', 'c']) void wait(id);
      await settled();
      expect(order).toEqual(['a granted']);
      await limiter.release('key', 'a');
      await settled();
      expect(order).toEqual(['a granted', 'b granted']);
      await limiter.release('key', 'a');
      await settled();
      expect(order).toHaveLength(2);
      await limiter.release('key', 'b');
      await settled();
      expect(order).toEqual(['a granted', 'b granted', 'c granted']);
    });

    test('is refused when its time is up, and leaves the queue', async () => {
      const { advance, limiter, order, wait, settled } = await setUpQueue();
      for (const id of ['a', 'b']) void wait(id);
      await settled();
      advance(10_000);
      await settled();
      expect(order).toEqual(['a granted', 'b concurrency']);
      await limiter.release('key', 'a');
      void wait('c');
      await settled();
      expect(order.at(-1)).toBe('c granted');
    });

    test('leaves the queue when its signal is raised, and the next request moves up', async () => {
      const { limiter, order, wait, settled } = await setUpQueue();
      const leaving = new AbortController();
      void wait('a');
      void wait('b', leaving.signal);
      void wait('c');
      await settled();
      leaving.abort();
      await limiter.release('key', 'a');
      await settled();
      expect(order).toEqual(['a granted', 'b concurrency', 'c granted']);
    });

    test('does not wait when its signal was raised before', async () => {
      const { order, wait, settled } = await setUpQueue();
      void wait('a');
      void wait('b', AbortSignal.abort());
      await settled();
      expect(order).toEqual(['a granted', 'b concurrency']);
    });

    test('is not overtaken by a later request that finds a slot free', async () => {
      const { limiter, order, wait, settled } = await setUpQueue();
      const wide = { ...limits, concurrency: 2 };
      for (const id of ['a', 'b']) void wait(id);
      await settled();
      void wait('late', signal, wide);
      await settled();
      expect(order).toEqual(['a granted']);
      await limiter.release('key', 'a');
      await settled();
      expect(order).toEqual(['a granted', 'b granted', 'late granted']);
    });

    test('is refused, and waits no longer, when the starts of the minute are used up', async () => {
      const { limiter, order, wait, settled } = await setUpQueue();
      const scarce = { ...limits, requestsPerMinute: 1 };
      void wait('a', signal, scarce);
      void wait('b', signal, scarce);
      await settled();
      await limiter.release('key', 'a');
      await settled();
      expect(order).toEqual(['a granted', 'b rate']);
    });

    test('is refused at once when as many as may wait do so, and is told so', async () => {
      const { limiter, wait, order, settled } = await setUpQueue();
      for (let number = 0; number <= maxWaitingRequests; number++) void wait(`${number}`);
      await settled();
      expect(order).toEqual(['0 granted']);
      const refused = await limiter.acquire('key', 'one too many', limits, signal);
      expect(refused).toMatchObject({ verdict: 'concurrency', inFlight: 1, isQueueFull: true });
      const impatient = await limiter.acquire('key', 'impatient', { ...limits, queueWaitMs: 0 }, signal);
      expect(impatient).not.toHaveProperty('isQueueFull');
    });

    /** Lets the ends of waits be noticed that another call of the store decided. */
    const noticed = async ({
      advance,
      settled,
    }: Pick<TestedLimiter, 'advance' | 'settled'>): Promise<void> => {
      await settled();
      advance(100);
      await settled();
    };

    test('is served at once when the limits of its key are raised, with all those for which there are slots', async () => {
      const queue = await setUpQueue();
      for (const id of ['a', 'b', 'c', 'd']) void queue.wait(id);
      await queue.settled();
      await queue.setLimits('key', { concurrency: 3 });
      queue.limiter.limitsChanged();
      await noticed(queue);
      expect(queue.order).toEqual(['a granted', 'b granted', 'c granted']);
      await queue.limiter.release('key', 'a');
      await noticed(queue);
      expect(queue.order.slice(3)).toEqual(['d granted']);
    });

    test('gets the default when its key has no limit of its own any more', async () => {
      const queue = await setUpQueue();
      await queue.setLimits('key', limits);
      for (const id of ['a', 'b', 'c', 'd', 'e']) void queue.wait(id);
      await queue.settled();
      await queue.setLimits('key', {});
      queue.limiter.limitsChanged();
      await noticed(queue);
      expect(queue.order).toEqual(['a granted', 'b granted', 'c granted', 'd granted']);
    });

    test('is not served beyond limits that were lowered while it waited', async () => {
      const queue = await setUpQueue();
      const wide = { ...limits, concurrency: 3 };
      for (const id of ['a', 'b', 'c', 'd']) void queue.wait(id, signal, wide);
      await queue.settled();
      await queue.setLimits('key', { concurrency: 1, requestsPerMinute: generous });
      queue.limiter.limitsChanged();
      await noticed(queue);
      for (const id of ['a', 'b']) await queue.limiter.release('key', id);
      await noticed(queue);
      expect(queue.order).toEqual(['a granted', 'b granted', 'c granted']);
      await queue.limiter.release('key', 'c');
      await noticed(queue);
      expect(queue.order.slice(3)).toEqual(['d granted']);
    });

    test('is refused when it is its turn and fewer starts a minute are allowed by then', async () => {
      const queue = await setUpQueue();
      for (const id of ['a', 'b']) void queue.wait(id);
      await queue.settled();
      await queue.setLimits('key', { concurrency: 1, requestsPerMinute: 1 });
      queue.limiter.limitsChanged();
      await noticed(queue);
      await queue.limiter.release('key', 'a');
      await noticed(queue);
      expect(queue.order).toEqual(['a granted', 'b rate']);
    });

    test('is told by the limits in force what is left, when its time is up after a change', async () => {
      const queue = await setUpQueue();
      void queue.wait('a');
      const ended = queue.limiter.acquire('key', 'b', limits, signal);
      await queue.settled();
      await queue.setLimits('key', { concurrency: 1, requestsPerMinute: 5 });
      queue.limiter.limitsChanged();
      await noticed(queue);
      queue.advance(10_000);
      await queue.settled();
      expect(await ended).toMatchObject({ verdict: 'concurrency', inFlight: 1, remainingStarts: 4 });
    });

    test('gets the limits in force within a second, although it came with earlier ones after the change', async () => {
      const queue = await setUpQueue();
      void queue.wait('a');
      await queue.settled();
      await queue.setLimits('key', { concurrency: 2 });
      queue.limiter.limitsChanged();
      await noticed(queue);
      void queue.wait('b');
      await queue.settled();
      expect(queue.order).toEqual(['a granted']);
      queue.advance(1_000);
      await noticed(queue);
      expect(queue.order).toEqual(['a granted', 'b granted']);
    });

    test('keeps its limits while its key is not stored', async () => {
      const queue = await setUpQueue();
      for (const id of ['a', 'b']) void queue.wait(id);
      await queue.settled();
      queue.limiter.limitsChanged();
      queue.advance(1_000);
      await noticed(queue);
      expect(queue.order).toEqual(['a granted']);
    });
  });
}

/** One step of a random life: a start, the release of some earlier start, or time going by. */
type Step =
  | { readonly kind: 'start'; readonly keyId: string }
  | { readonly kind: 'release'; readonly index: number }
  | { readonly kind: 'pass'; readonly durationMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('start'), keyId: fc.constantFrom('a', 'b') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release'), index: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pass'),
      durationMs: fc.oneof(fc.constantFrom(1, minuteMs - 1, minuteMs, minuteMs + 1), fc.nat(30_000)),
    }),
  },
);

/** Takes some steps; returns what the limiter decided at each start, and what a naive count says. */
async function compareWithCount(
  { limiter, monotonicMs, advance }: TestedLimiter,
  limits: Limits,
  steps: readonly Step[],
): Promise<{ readonly decided: readonly unknown[]; readonly expected: readonly unknown[] }> {
  const all: { id: string; keyId: string; startMs: number; running: boolean }[] = [];
  const decided: unknown[] = [];
  const expected: unknown[] = [];
  const startOne = async (keyId: string): Promise<void> => {
    const nowMs = monotonicMs();
    const mine = all.filter((one) => one.keyId === keyId);
    const recent = mine.filter(({ startMs }) => nowMs - startMs < minuteMs);
    const inFlight = mine.filter(({ running }) => running).length;
    const isRate = recent.length >= limits.requestsPerMinute;
    const verdict = inFlight >= limits.concurrency ? 'concurrency' : isRate ? 'rate' : 'granted';
    const id = `request-${decided.length}`;
    const taken = verdict === 'granted' ? 1 : 0;
    decided.push(await limiter.acquire(keyId, id, limits, signal));
    expected.push({
      verdict,
      inFlight: inFlight + taken,
      remainingStarts: limits.requestsPerMinute - recent.length - taken,
      resetMs: recent.length + taken === 0 ? 0 : (recent[0]?.startMs ?? nowMs) + minuteMs - nowMs,
    });
    if (verdict === 'granted') all.push({ id, keyId, startMs: nowMs, running: true });
  };
  for (const action of steps) {
    if (action.kind === 'pass') advance(action.durationMs);
    else if (action.kind === 'start') await startOne(action.keyId);
    else {
      const released = all[action.index % Math.max(1, all.length)];
      if (released === undefined) continue;
      released.running = false;
      await limiter.release(released.keyId, released.id);
    }
  }
  return { decided, expected };
}
