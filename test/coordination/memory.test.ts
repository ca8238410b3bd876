import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMemoryLimiter } from '../../src/coordination/memory.ts';
import type { Limits } from '../../src/domain/limits.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';

const minuteMs = 60_000;
const generous = 1_000;
const { signal } = new AbortController();

/** A limiter with its clock, and starts that make up their own request ids. */
function setUp(given: Omit<Limits, 'queueWaitMs'>) {
  const limits = { ...given, queueWaitMs: 0 };
  const clock = createFakeClock();
  const limiter = createMemoryLimiter(clock);
  let count = 0;
  const start = (keyId = 'key') => limiter.acquire(keyId, `request-${count++}`, limits, signal);
  const verdicts = async (times: number, keyId?: string) => {
    const all = [];
    for (let i = 0; i < times; i++) all.push((await start(keyId)).verdict);
    return all;
  };
  return { clock, limiter, start, verdicts };
}

describe('requests in progress', () => {
  test('are never more than the limit, and a released slot is free again', async () => {
    const { limiter, start, verdicts } = setUp({ concurrency: 2, requestsPerMinute: generous });
    expect(await verdicts(3)).toEqual(['granted', 'granted', 'concurrency']);
    await limiter.release('key', 'request-0');
    expect(await start()).toMatchObject({ verdict: 'granted', inFlight: 2 });
    expect(await start()).toMatchObject({ verdict: 'concurrency', inFlight: 2 });
  });

  test('give back one slot, however often they are released', async () => {
    const { limiter, verdicts } = setUp({ concurrency: 2, requestsPerMinute: generous });
    await verdicts(2);
    for (let i = 0; i < 3; i++) await limiter.release('key', 'request-0');
    expect(await verdicts(2)).toEqual(['granted', 'concurrency']);
  });

  test('are not touched by the release of what never ran', async () => {
    const { limiter, verdicts } = setUp({ concurrency: 1, requestsPerMinute: generous });
    await verdicts(1);
    await limiter.release('key', 'request-9');
    await limiter.release('other', 'request-0');
    expect(await verdicts(1)).toEqual(['concurrency']);
  });

  test('of one key are not counted for another', async () => {
    const { verdicts } = setUp({ concurrency: 1, requestsPerMinute: 1 });
    expect(await verdicts(1, 'a')).toEqual(['granted']);
    expect(await verdicts(1, 'b')).toEqual(['granted']);
  });

  test('hold their slot for as long as they run, however quiet', async () => {
    const { clock, verdicts } = setUp({ concurrency: 1, requestsPerMinute: generous });
    await verdicts(1);
    clock.advance(10 * minuteMs);
    expect(await verdicts(1)).toEqual(['concurrency']);
  });

  test('that were refused have used up no start', async () => {
    const { limiter, start, verdicts } = setUp({ concurrency: 1, requestsPerMinute: 2 });
    expect(await verdicts(5)).toEqual(['granted', ...Array<string>(4).fill('concurrency')]);
    await limiter.release('key', 'request-0');
    expect(await start()).toMatchObject({ verdict: 'granted', remainingStarts: 0 });
  });
});

describe('starts', () => {
  test('may all come at once, and are given back 60 seconds later, not sooner', async () => {
    const { clock, start, verdicts } = setUp({ concurrency: generous, requestsPerMinute: 2 });
    expect(await start()).toMatchObject({ verdict: 'granted', remainingStarts: 1, resetMs: minuteMs });
    expect(await start()).toMatchObject({ verdict: 'granted', remainingStarts: 0, resetMs: minuteMs });
    clock.advance(minuteMs - 1);
    expect(await start()).toMatchObject({ verdict: 'rate', remainingStarts: 0, resetMs: 1 });
    clock.advance(1);
    expect(await verdicts(3)).toEqual(['granted', 'granted', 'rate']);
  });

  test('can’t be doubled at the edge of a minute', async () => {
    const { clock, verdicts } = setUp({ concurrency: generous, requestsPerMinute: 10 });
    clock.advance(minuteMs - 1);
    expect(await verdicts(10)).toEqual(Array<string>(10).fill('granted'));
    clock.advance(2);
    expect(await verdicts(10)).toEqual(Array<string>(10).fill('rate'));
  });

  test('are remembered for their 60 seconds, even when all they started has ended', async () => {
    const { clock, limiter, verdicts } = setUp({ concurrency: 1, requestsPerMinute: 1 });
    clock.advance(minuteMs - 1);
    await verdicts(1);
    await limiter.release('key', 'request-0');
    clock.advance(minuteMs - 1);
    expect(await verdicts(1)).toEqual(['rate']);
  });

  test('come back one by one, as they were used', async () => {
    const { clock, start, verdicts } = setUp({ concurrency: generous, requestsPerMinute: 2 });
    await start();
    clock.advance(40_000);
    await start();
    expect(await start()).toMatchObject({ verdict: 'rate', resetMs: 20_000 });
    clock.advance(20_000);
    expect(await verdicts(2)).toEqual(['granted', 'rate']);
    expect(await start()).toMatchObject({ resetMs: 40_000 });
  });

  test('are counted right for a key with thousands of them, over many windows', async () => {
    const { clock, limiter, start } = setUp({ concurrency: 1, requestsPerMinute: 10_000 });
    const stepMs = 12;
    const inWindow = minuteMs / stepMs;
    for (let count = 0; count < 3 * inWindow; count++) {
      const { remainingStarts, resetMs } = await start();
      const kept = Math.min(count + 1, inWindow);
      expect([remainingStarts, resetMs]).toEqual([10_000 - kept, minuteMs - (kept - 1) * stepMs]);
      await limiter.release('key', `request-${count}`);
      clock.advance(stepMs);
    }
  });

  test('are not given back by a release', async () => {
    const { limiter, verdicts } = setUp({ concurrency: 1, requestsPerMinute: 1 });
    await verdicts(1);
    await limiter.release('key', 'request-0');
    expect(await verdicts(1)).toEqual(['rate']);
  });
});

test('the limiter keeps one timer for all its keys, and none once it is closed', async () => {
  const { clock, limiter, verdicts } = setUp({ concurrency: 1, requestsPerMinute: 1 });
  for (const keyId of ['a', 'b', 'c']) await verdicts(1, keyId);
  expect(clock.scheduled).toBe(1);
  clock.advance(5 * minuteMs);
  expect(clock.scheduled).toBe(1);
  limiter.close();
  expect(clock.scheduled).toBe(0);
});

/** One step of a random life: a start, the release of some earlier start, or time going by. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ keyId: fc.constantFrom('a', 'b') }) },
  { weight: 2, arbitrary: fc.record({ releases: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      passMs: fc.oneof(fc.constantFrom(1, minuteMs - 1, minuteMs, minuteMs + 1), fc.nat(30_000)),
    }),
  },
);

test('any sequence of starts and releases is judged as a naive count would judge it', async () => {
  const someLimits = fc.record({
    concurrency: fc.integer({ min: 1, max: 4 }),
    requestsPerMinute: fc.integer({ min: 1, max: 6 }),
    queueWaitMs: fc.constant(0),
  });
  await fc.assert(
    fc.asyncProperty(someLimits, fc.array(step, { maxLength: 40 }), async (limits, steps) => {
      const clock = createFakeClock();
      const limiter = createMemoryLimiter(clock);
      const all: { id: string; keyId: string; startMs: number; running: boolean }[] = [];
      const judged: unknown[] = [];
      const expected: unknown[] = [];
      let attempts = 0;
      for (const action of steps) {
        if ('passMs' in action) clock.advance(action.passMs);
        else if ('releases' in action) {
          const released = all[action.releases % Math.max(1, all.length)];
          if (released === undefined) continue;
          released.running = false;
          await limiter.release(released.keyId, released.id);
        } else {
          const { keyId } = action;
          const nowMs = clock.monotonicMs();
          const mine = all.filter((one) => one.keyId === keyId);
          const recent = mine.filter(({ startMs }) => nowMs - startMs < minuteMs);
          const inFlight = mine.filter(({ running }) => running).length;
          const full = inFlight >= limits.concurrency;
          const verdict = full
            ? 'concurrency'
            : recent.length >= limits.requestsPerMinute
              ? 'rate'
              : 'granted';
          const id = `request-${attempts++}`;
          const taken = verdict === 'granted' ? 1 : 0;
          judged.push(await limiter.acquire(keyId, id, limits, signal));
          expected.push({
            verdict,
            inFlight: inFlight + taken,
            remainingStarts: limits.requestsPerMinute - recent.length - taken,
            resetMs: recent.length + taken === 0 ? 0 : (recent[0]?.startMs ?? nowMs) + minuteMs - nowMs,
          });
          if (verdict === 'granted') all.push({ id, keyId, startMs: nowMs, running: true });
        }
      }
      expect(judged).toEqual(expected);
    }),
    propertyRun(),
  );
});

describe('a request that may wait for a slot', () => {
  const limits = { concurrency: 1, requestsPerMinute: generous, queueWaitMs: 10_000 };

  /** A limiter whose one slot is taken, and requests that wait for it; `order` is how their waits ended. */
  function setUpLine() {
    const clock = createFakeClock();
    const limiter = createMemoryLimiter(clock);
    const order: string[] = [];
    const wait = async (id: string, leaving = signal, given = limits) => {
      const { verdict } = await limiter.acquire('key', id, given, leaving);
      order.push(`${id} ${verdict}`);
    };
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    return { clock, limiter, order, wait, settled };
  }

  test('gets the next one that is free, in the order of arrival', async () => {
    const { limiter, order, wait, settled } = setUpLine();
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

  test('is refused when its time is up, and leaves the line', async () => {
    const { clock, limiter, order, wait, settled } = setUpLine();
    for (const id of ['a', 'b']) void wait(id);
    await settled();
    clock.advance(10_000);
    await settled();
    expect(order).toEqual(['a granted', 'b concurrency']);
    await limiter.release('key', 'a');
    void wait('c');
    await settled();
    expect(order.at(-1)).toBe('c granted');
  });

  test('leaves the line when its client leaves, and the next one moves up', async () => {
    const { limiter, order, wait, settled } = setUpLine();
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

  test('is not overtaken by one that comes when a slot is free but others wait', async () => {
    const { limiter, order, wait, settled } = setUpLine();
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

  test('is told when the minute is used up, rather than kept waiting', async () => {
    const { limiter, order, wait, settled } = setUpLine();
    const scarce = { ...limits, requestsPerMinute: 1 };
    void wait('a', signal, scarce);
    void wait('b', signal, scarce);
    await settled();
    await limiter.release('key', 'a');
    await settled();
    expect(order).toEqual(['a granted', 'b rate']);
  });

  test('is refused at once when a hundred wait already', async () => {
    const { order, wait, settled } = setUpLine();
    for (let count = 0; count < 102; count++) void wait(String(count));
    await settled();
    expect(order).toEqual(['0 granted', '101 concurrency']);
  });
});

test('the time until the next start is never longer than the window, whatever the fractions of the clock', async () => {
  const clock = createFakeClock();
  // 5538.2711508 + 60,000 - 5538.2711508 is 60,000.00000000001, which would be shown as 1m1s.
  const limiter = createMemoryLimiter({ ...clock, monotonicMs: () => 5_538.271_150_8 });
  const limits = { concurrency: 2, requestsPerMinute: 1, queueWaitMs: 0 };
  expect(await limiter.acquire('key', 'a', limits, signal)).toMatchObject({ resetMs: minuteMs });
  expect(await limiter.acquire('key', 'b', limits, signal)).toMatchObject({
    verdict: 'rate',
    resetMs: minuteMs,
  });
});
