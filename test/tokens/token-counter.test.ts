import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { CountReply, CountRequest } from '../../src/tokens/token-worker.ts';
import { createTokenCounter } from '../../src/tokens/token-counter.ts';
import type { ThreadedTokenCounter } from '../../src/tokens/token-counter.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';

/** How long the thread stays without work, may take for a piece of a text, and is not started again, in milliseconds. */
const idleMs = 600_000;
const maxPieceMs = 10_000;
const restartMs = 5_000;

/** The size of the pieces that are counted at once, in UTF-16 code units. */
const pieceChars = 2_048;

/** The size of the texts that may wait, in UTF-16 code units. */
const maxWaitingChars = 33_554_432;

/** A thread that answers and ends only when a test says so. */
class ScriptedThread extends EventEmitter {
  readonly asked: string[] = [];
  isTerminated = false;
  postMessage({ piece }: CountRequest): void {
    this.asked.push(piece);
  }
  answer(reply: CountReply): void {
    this.emit('message', reply);
  }
  counted(tokens: number): void {
    this.answer({ kind: 'counted', tokens });
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
    expect(thread?.asked).toEqual(['one']);
    thread?.counted(11);
    expect(thread?.asked).toEqual(['one', 'two']);
    thread?.counted(22);
    expect(await Promise.all(counts)).toEqual([11, 22]);
    expect(threads).toHaveLength(1);
  });

  test('rejects the one text that can not be counted', async () => {
    const { threads, counter } = createScripted();
    const [first, second] = [counter.count('one'), counter.count('two')];
    threads[0]?.answer({ kind: 'failed', reason: 'no such token' });
    threads[0]?.counted(22);
    await expect(first).rejects.toThrow('no such token');
    expect(await second).toBe(22);
  });

  test('ends a thread that was idle for ten minutes, and starts another for the next text', async () => {
    const { clock, threads, counter } = createScripted();
    const first = counter.count('one');
    threads[0]?.counted(11);
    await first;
    clock.advance(idleMs - 1);
    expect(threads[0]?.isTerminated).toBe(false);
    clock.advance(1);
    expect(threads[0]?.isTerminated).toBe(true);
    void counter.count('two');
    expect(threads[1]?.asked).toEqual(['two']);
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
      threads[1]?.counted(44);
      expect(await fourth).toBe(44);
    },
  );

  test('lets texts take turns, a piece each: a short one does not wait for the whole of a long one', async () => {
    const { threads, counter } = createScripted();
    const pieces = ['a', 'b', 'c'].map((letter) => letter.repeat(pieceChars));
    const long = counter.count(pieces.join(''));
    const [short, other] = [counter.count('short'), counter.count('d'.repeat(pieceChars + 1))];
    for (const tokens of [1, 20, 300, 4, 500]) threads[0]?.counted(tokens);
    expect(await short).toBe(20);
    expect(await other).toBe(800);
    expect(threads[0]?.asked).toEqual([
      pieces[0],
      'short',
      'd'.repeat(pieceChars),
      pieces[1],
      'd',
      pieces[2],
    ]);
    threads[0]?.counted(6);
    expect(await long).toBe(11);
    expect(threads).toHaveLength(1);
  });

  test('counts a text that no request waits for only while no other one waits', async () => {
    const { threads, counter } = createScripted();
    const sample = counter.countWhenIdle('s'.repeat(2 * pieceChars));
    expect(counter.isCounting).toBe(false);
    const [one, two] = [counter.count('one'), counter.count('two')];
    expect(counter.isCounting).toBe(true);
    for (const tokens of [1, 20, 300]) threads[0]?.counted(tokens);
    expect([await one, await two]).toEqual([20, 300]);
    expect(counter.isCounting).toBe(false);
    expect(threads[0]?.asked).toEqual(['s'.repeat(pieceChars), 'one', 'two', 's'.repeat(pieceChars)]);
    threads[0]?.counted(4);
    expect(await sample).toBe(5);
  });

  test('rejects such a text when the thread dies, and when the gateway closes', async () => {
    const { clock, threads, counter } = createScripted();
    const counts = ['one', 'two'].map((text) => counter.countWhenIdle(text));
    threads[0]?.emit('exit', 1);
    for (const count of counts) await expect(count).rejects.toThrow('the token thread ended');
    clock.advance(restartMs);
    const last = counter.countWhenIdle('three');
    await counter.close();
    await expect(last).rejects.toThrow('the gateway closes');
  });

  test('counts the other texts when a piece of one can not be counted', async () => {
    const { threads, counter } = createScripted();
    const [long, short] = [counter.count('a'.repeat(3 * pieceChars)), counter.count('short')];
    threads[0]?.counted(1);
    threads[0]?.counted(20);
    threads[0]?.answer({ kind: 'failed', reason: 'no such token' });
    await expect(long).rejects.toThrow('no such token');
    expect(await short).toBe(20);
    void counter.count('next');
    expect(threads[0]?.asked.at(-1)).toBe('next');
  });

  test('ends a thread that hangs, but none that answers for each piece in time, however long the text takes', async () => {
    const { clock, threads, counter } = createScripted();
    const [first, second] = [counter.count('a'.repeat(3 * pieceChars)), counter.count('two')];
    for (const tokens of [1, 22, 3, 5]) {
      clock.advance(maxPieceMs - 1);
      threads[0]?.counted(tokens);
    }
    expect(await Promise.all([first, second])).toEqual([9, 22]);
    const third = counter.count('three');
    clock.advance(maxPieceMs - 1);
    expect(threads[0]?.isTerminated).toBe(false);
    clock.advance(1);
    await expect(third).rejects.toThrow('did not answer within 10000 ms');
    expect(threads[0]?.isTerminated).toBe(true);
  });

  test('refuses more text than may wait', async () => {
    const { threads, counter } = createScripted();
    const long = 'x'.repeat(maxWaitingChars);
    const waiting = counter.count(long);
    threads[0]?.counted(1);
    await expect(counter.count('y')).rejects.toThrow('too much text waits');
    for (let counted = pieceChars; counted < maxWaitingChars; counted += pieceChars) threads[0]?.counted(1);
    expect(await waiting).toBe(maxWaitingChars / pieceChars);
    void counter.count('y');
    expect(threads[0]?.asked.at(-1)).toBe('y');
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
