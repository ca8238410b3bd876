import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { CountReply, CountRequest } from '../../src/tokens/thread-messages.ts';
import { createTokenCounter } from '../../src/tokens/token-counter.ts';
import type { ThreadedTokenCounter } from '../../src/tokens/token-counter.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';

/** How long the thread stays without work, may take for a text, and is not started again, in milliseconds. */
const idleMs = 600_000;
const maxCountMs = 10_000;
const restartMs = 5_000;

/** The size of the texts that may wait, in UTF-16 code units. */
const maxWaitingChars = 33_554_432;

/** A thread that answers and ends only when a test says so. */
class ScriptedThread extends EventEmitter {
  readonly asked: CountRequest[] = [];
  isReferenced = true;
  isTerminated = false;
  postMessage(request: CountRequest): void {
    this.asked.push(request);
  }
  answer(reply: CountReply): void {
    this.emit('message', reply);
  }
  ref(): void {
    this.isReferenced = true;
  }
  unref(): void {
    this.isReferenced = false;
  }
  async terminate(): Promise<number> {
    this.isTerminated = true;
    this.emit('exit', 1);
    return 1;
  }
}

/** A counter whose threads are scripted, in the order of their starts. */
function createScripted() {
  const clock = createFakeClock();
  const threads: ScriptedThread[] = [];
  const counter = createTokenCounter(clock, () => {
    const thread = new ScriptedThread();
    threads.push(thread);
    return thread as unknown as Worker;
  });
  return { clock, threads, counter };
}

describe('the thread that counts tokens', () => {
  let counter: ThreadedTokenCounter | null = null;
  afterEach(() => counter?.close());

  test('counts as the tokenizer does, in pieces of 2,048 code units', { timeout: 120_000 }, async () => {
    const threaded = createTokenCounter(systemClock);
    counter = threaded;
    const direct = (text: string): number => {
      const pieces = text.match(/[^]{1,2048}/g) ?? [];
      return pieces.reduce((sum, piece) => sum + countTokens(piece, { disallowedSpecial: new Set() }), 0);
    };
    const unit = fc.oneof(fc.string({ unit: 'binary' }), fc.lorem(), fc.constant('<|endoftext|>'));
    const texts = fc.tuple(unit, fc.integer({ min: 1, max: 400 })).map(([text, times]) => text.repeat(times));
    const samples = fc.array(texts, { maxLength: 3 });
    const counted = fc.asyncProperty(samples, async (some) => {
      const found = await Promise.all(some.map((text) => threaded.count(text)));
      expect(found).toEqual(some.map(direct));
    });
    await fc.assert(counted, propertyRun(60));
  });
});

describe('a counter of tokens', () => {
  test('starts its thread with the first text, and keeps it for the next ones', async () => {
    const { threads, counter } = createScripted();
    expect(threads).toEqual([]);
    const counts = ['one', 'two'].map((text) => counter.count(text));
    const [thread] = threads;
    expect(thread?.asked).toEqual([
      { id: 1, text: 'one' },
      { id: 2, text: 'two' },
    ]);
    thread?.answer({ kind: 'counted', id: 2, tokens: 22 });
    thread?.answer({ kind: 'counted', id: 1, tokens: 11 });
    expect(await Promise.all(counts)).toEqual([11, 22]);
    expect(threads).toHaveLength(1);
  });

  test('rejects the one text that can not be counted', async () => {
    const { threads, counter } = createScripted();
    const [first, second] = [counter.count('one'), counter.count('two')];
    threads[0]?.answer({ kind: 'failed', id: 1, reason: 'no such token' });
    threads[0]?.answer({ kind: 'counted', id: 2, tokens: 22 });
    await expect(first).rejects.toThrow('no such token');
    expect(await second).toBe(22);
  });

  test('ends a thread that was idle for ten minutes, and starts another for the next text', async () => {
    const { clock, threads, counter } = createScripted();
    const first = counter.count('one');
    threads[0]?.answer({ kind: 'counted', id: 1, tokens: 11 });
    await first;
    clock.advance(idleMs - 1);
    expect(threads[0]?.isTerminated).toBe(false);
    clock.advance(1);
    expect(threads[0]?.isTerminated).toBe(true);
    void counter.count('two');
    expect(threads[1]?.asked).toEqual([{ id: 1, text: 'two' }]);
  });

  test('keeps the process alive only while a text waits', async () => {
    const { threads, counter } = createScripted();
    const first = counter.count('one');
    expect(threads[0]?.isReferenced).toBe(true);
    threads[0]?.answer({ kind: 'counted', id: 1, tokens: 11 });
    await first;
    expect(threads[0]?.isReferenced).toBe(false);
    void counter.count('two');
    expect(threads[0]?.isReferenced).toBe(true);
  });

  test.each(['error', 'exit'] as const)(
    'rejects what waits when its thread dies (%s), and starts another one after five seconds',
    async (event) => {
      const { clock, threads, counter } = createScripted();
      const counts = ['one', 'two'].map((text) => counter.count(text));
      threads[0]?.emit(event, new Error('out of memory'));
      for (const count of counts) await expect(count).rejects.toThrow('the token thread');
      clock.advance(restartMs - 1);
      await expect(counter.count('three')).rejects.toThrow('failed just now');
      clock.advance(1);
      const fourth = counter.count('four');
      threads[1]?.answer({ kind: 'counted', id: 1, tokens: 44 });
      expect(await fourth).toBe(44);
    },
  );

  test('ends a thread that hangs, each text with a time of its own', async () => {
    const { clock, threads, counter } = createScripted();
    const [first, second] = [counter.count('one'), counter.count('two')];
    clock.advance(maxCountMs - 1);
    threads[0]?.answer({ kind: 'counted', id: 1, tokens: 11 });
    expect(await first).toBe(11);
    clock.advance(maxCountMs - 1);
    expect(threads[0]?.isTerminated).toBe(false);
    clock.advance(1);
    await expect(second).rejects.toThrow('did not answer within 10000 ms');
    expect(threads[0]?.isTerminated).toBe(true);
  });

  test('refuses more text than may wait', async () => {
    const { threads, counter } = createScripted();
    const long = 'x'.repeat(maxWaitingChars);
    const waiting = counter.count(long);
    await expect(counter.count('y')).rejects.toThrow('too much text waits');
    threads[0]?.answer({ kind: 'counted', id: 1, tokens: 1 });
    await waiting;
    void counter.count('y');
    expect(threads[0]?.asked).toHaveLength(2);
  });

  test('ends its thread when it is closed, leaves no timer, and counts nothing more', async () => {
    const { clock, threads, counter } = createScripted();
    const waiting = counter.count('one');
    await counter.close();
    await expect(waiting).rejects.toThrow('the gateway closes');
    expect([threads[0]?.isTerminated, clock.scheduled]).toEqual([true, 0]);
    await expect(counter.count('two')).rejects.toThrow('the gateway closes');
  });
});
