import { setImmediate as callAfterTurn } from 'node:timers';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { UpstreamFault } from '../../src/domain/ports/upstreams.ts';
import { BodyQueue } from '../../src/transport/body-queue.ts';
import type { AfterRead, Deadlines } from '../../src/transport/body-queue.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const highWaterBytes = 16_384;
const graceMs = 1_000;
const long: Deadlines = { firstByteMs: 100_000, idleMs: 100_000, totalMs: 1_000_000 };

/** A queue on a fake clock; its source records the calls that it gets, and breaks when it is aborted. */
function setUp(deadlines: Partial<Deadlines> = {}, afterRead: AfterRead = queueMicrotask) {
  const clock = createFakeClock();
  const noted: string[] = [];
  const queue: BodyQueue = new BodyQueue(clock, { ...long, ...deadlines }, afterRead, () =>
    noted.push(`ended: ${queue.fault?.fault ?? 'properly'}`),
  );
  const source = {
    pause: () => noted.push('pause'),
    resume: () => noted.push('resume'),
    abort: () => {
      noted.push('abort');
      queue.finish({ kind: 'fault', fault: 'broken' });
    },
  };
  queue.attach(source);
  const push = (text: string) => queue.push(Buffer.from(text));
  const read = async () => {
    const part = await queue.read();
    return part === null || 'fault' in part ? part : Buffer.from(part).toString();
  };
  return { clock, noted, queue, source, push, read };
}

/** After a read of a plain connection, and after one of TLS. */
const afterReads: readonly [string, AfterRead][] = [
  ['in the turn', queueMicrotask],
  ['after the turn', (callback) => void callAfterTurn(callback)],
];

/** Starts a read, whose result can be checked later. */
function startReading(read: () => Promise<unknown>) {
  let result: unknown = 'waiting';
  void read().then((part) => (result = part));
  return async () => {
    await setImmediate();
    return result;
  };
}

describe.each(afterReads)('consume, %s', (_when, afterRead) => {
  test('hands over what has arrived at once, then what each read brings, until a piece is not wanted', async () => {
    const { push, queue, read } = setUp({}, afterRead);
    push('a');
    push('b');
    const taken: string[] = [];
    queue.consume((piece) => {
      taken.push(Buffer.from(piece as Uint8Array).toString());
      return taken.length < 3;
    });
    expect(taken).toEqual(['ab']);
    push('c');
    await setImmediate();
    push('d');
    push('e');
    expect(taken).toEqual(['ab', 'c']);
    await setImmediate();
    expect(taken).toEqual(['ab', 'c', 'de']);
    push('f');
    push('g');
    await setImmediate();
    expect(taken).toHaveLength(3);
    expect(await read()).toBe('fg');
  });

  test('hands over the end of a body at once, after the bytes that came with it', async () => {
    const { push, queue } = setUp({}, afterRead);
    const taken: unknown[] = [];
    queue.consume((piece) => {
      taken.push(piece instanceof Uint8Array ? Buffer.from(piece).toString() : piece);
      return true;
    });
    push('a');
    push('b');
    queue.finish(null);
    expect(taken).toEqual(['ab', null]);
    await setImmediate();
    expect(taken).toHaveLength(2);
  });

  test('hands over nothing of a body that was released in the turn of its bytes', async () => {
    const { push, queue } = setUp({}, afterRead);
    const taken: unknown[] = [];
    queue.consume((piece) => taken.push(piece) > 0);
    push('a');
    queue.release();
    await setImmediate();
    expect(taken).toEqual([]);
  });

  test('hands over the end alone of a call that was stopped before its last bytes were handed over', async () => {
    const { push, queue } = setUp({}, afterRead);
    const taken: unknown[] = [];
    queue.consume((piece) => taken.push(piece) > 0);
    push('a');
    queue.stop({ kind: 'fault', fault: 'interrupted' });
    await setImmediate();
    expect(taken).toEqual([{ kind: 'fault', fault: 'interrupted' }]);
  });

  test('pauses an upstream that pushes more than 1 MiB before any of it is handed over', async () => {
    const { queue, noted } = setUp({}, afterRead);
    const taken: number[] = [];
    queue.consume((piece) => taken.push(piece instanceof Uint8Array ? piece.length : 0) > 0);
    for (let count = 0; count < 15; count++) queue.push(Buffer.alloc(65_536));
    expect(noted).toEqual([]);
    queue.push(Buffer.alloc(65_536));
    expect(noted).toEqual(['pause']);
    await setImmediate();
    expect(taken).toEqual([1_048_576]);
    expect(noted).toEqual(['pause', 'resume']);
  });

  test('hands what comes to the newest of two readers', async () => {
    const { push, queue, read } = setUp({}, afterRead);
    const taken: unknown[] = [];
    queue.consume((piece) => taken.push(piece) > 0);
    push('a');
    expect(await read()).toBe('a');
    push('b');
    await setImmediate();
    expect(taken).toEqual([]);
    expect(await read()).toBe('b');
  });

  test('hands over the end of a call that was stopped while a piece was taken, once', async () => {
    const { push, queue } = setUp({}, afterRead);
    const taken: unknown[] = [];
    queue.consume((piece) => {
      taken.push(piece instanceof Uint8Array ? 'bytes' : piece?.fault);
      if (taken.length === 1) queue.stop({ kind: 'fault', fault: 'interrupted' });
      return true;
    });
    push('a');
    push('b');
    await setImmediate();
    push('c');
    expect(taken).toEqual(['bytes', 'interrupted']);
  });
});

describe('read', () => {
  test('returns everything that arrived since the last read', async () => {
    const { push, read } = setUp();
    push('a');
    push('b');
    expect(await read()).toBe('ab');
    push('c');
    expect(await read()).toBe('c');
  });

  test('waits for the next chunk when none has arrived', async () => {
    const { push, read } = setUp();
    const outcome = startReading(read);
    expect(await outcome()).toBe('waiting');
    push('');
    expect(await outcome()).toBe('waiting');
    push('a');
    expect(await outcome()).toBe('a');
  });

  test.each<[string, UpstreamFault | null]>([
    ['a proper end', null],
    ['a fault', { kind: 'fault', fault: 'broken' }],
    ['a deadline', { kind: 'fault', fault: 'idle_timeout' }],
  ])('returns the bytes before %s, and then that end on every further read', async (_name, end) => {
    const { queue, push, read } = setUp();
    push('a');
    push('b');
    queue.finish(end);
    expect([await read(), await read(), await read()]).toEqual(['ab', end, end]);
  });

  test('resolves with the end while it waits', async () => {
    const { queue, read } = setUp();
    const outcome = startReading(read);
    queue.finish(null);
    expect(await outcome()).toBeNull();
  });

  test('returns an interruption at once, without the unread bytes', async () => {
    const { queue, push, read } = setUp();
    push('a');
    queue.stop({ kind: 'fault', fault: 'interrupted' });
    expect(await read()).toEqual({ kind: 'fault', fault: 'interrupted' });
  });
});

describe('the end of a body', () => {
  test('is final: later ends and chunks change nothing', async () => {
    const { queue, noted, clock, push, read } = setUp();
    queue.finish(null);
    queue.finish({ kind: 'fault', fault: 'broken' });
    queue.stop({ kind: 'fault', fault: 'interrupted' });
    push('late');
    expect(await read()).toBeNull();
    expect(queue.fault).toBeNull();
    expect(noted).toEqual(['ended: properly']);
    expect(clock.scheduled).toBe(0);
  });

  test('by the gateway aborts the source before it is told to others, and the source’s resulting fault does not replace ours', async () => {
    const { queue, noted, clock, read } = setUp();
    queue.stop({ kind: 'fault', fault: 'interrupted' });
    expect(await read()).toEqual({ kind: 'fault', fault: 'interrupted' });
    expect(noted).toEqual(['abort', 'ended: interrupted']);
    expect(clock.scheduled).toBe(0);
  });

  test('before the source is attached aborts it as soon as it is attached', () => {
    const { queue, source, noted } = setUp();
    queue.stop({ kind: 'fault', fault: 'interrupted' });
    noted.length = 0;
    queue.attach(source);
    expect(noted).toEqual(['abort']);
  });
});

describe('a deadline', () => {
  test('for the first byte expires on time, not before', async () => {
    const { clock, noted, read } = setUp({ firstByteMs: 100 });
    const outcome = startReading(read);
    clock.advance(99);
    expect(await outcome()).toBe('waiting');
    clock.advance(1);
    expect(await outcome()).toEqual({ kind: 'fault', fault: 'first_byte_timeout' });
    expect(noted).toEqual(['abort', 'ended: first_byte_timeout']);
    expect(clock.scheduled).toBe(0);
  });

  test('for the first byte ends with the first byte', () => {
    const { clock, queue, push } = setUp({ firstByteMs: 100, idleMs: 5_000 });
    clock.advance(99);
    push('a');
    clock.advance(4_999);
    expect(queue.fault).toBeNull();
  });

  test('for the first byte may be longer than the one for silence', () => {
    const { clock, queue, push } = setUp({ firstByteMs: 5_000, idleMs: 100 });
    clock.advance(4_950);
    push('a');
    clock.advance(99);
    expect(queue.fault).toBeNull();
  });

  test('for the first byte is not met by an empty chunk', () => {
    const { clock, queue, push } = setUp({ firstByteMs: 100 });
    push('');
    clock.advance(100);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'first_byte_timeout' });
  });

  test('for silence counts from the last chunk', async () => {
    const { clock, queue, push, read } = setUp({ idleMs: 100 });
    for (const piece of ['a', 'b', 'c']) {
      push(piece);
      clock.advance(99);
    }
    expect(queue.fault).toBeNull();
    clock.advance(1);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'idle_timeout' });
    expect([await read(), await read()]).toEqual(['abc', { kind: 'fault', fault: 'idle_timeout' }]);
  });

  test('for silence expires to the millisecond after an early timer', () => {
    const { clock, queue, push } = setUp({ idleMs: 100 });
    push('a');
    clock.advance(40);
    push('b');
    clock.advance(99);
    expect(queue.fault).toBeNull();
    clock.advance(1);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'idle_timeout' });
  });

  test('for the whole call expires before the first byte', () => {
    const { clock, queue } = setUp({ totalMs: 50 });
    clock.advance(49);
    expect(queue.fault).toBeNull();
    clock.advance(1);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'total_timeout' });
  });

  test.each([
    ['a long silence allowed', 400],
    ['a short silence allowed', 20],
  ])('for the whole call expires in the middle of an active body, with %s', async (_name, idleMs) => {
    const { clock, noted, queue, push } = setUp({ idleMs, firstByteMs: 100, totalMs: 300 });
    clock.advance(9);
    for (let elapsedMs = 9; elapsedMs < 299; elapsedMs += 10) {
      push('x');
      await queue.read();
      clock.advance(10);
    }
    expect(queue.fault).toBeNull();
    clock.advance(1);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'total_timeout' });
    expect(noted).toEqual(['abort', 'ended: total_timeout']);
  });
});

describe('a slow reader', () => {
  test('pauses the source at the high-water mark, once, and resumes it by reading', async () => {
    const { noted, push, read } = setUp();
    push('x'.repeat(highWaterBytes - 1));
    expect(noted).toEqual([]);
    push('x');
    push('x');
    expect(noted).toEqual(['pause']);
    expect(await read()).toHaveLength(highWaterBytes + 1);
    push('x'.repeat(highWaterBytes - 1));
    expect(noted).toEqual(['pause', 'resume']);
    push('x');
    expect(noted).toEqual(['pause', 'resume', 'pause']);
  });

  test('that waits in a read gets a large chunk directly, without a pause', async () => {
    const { noted, push, read } = setUp();
    const outcome = startReading(read);
    push('x'.repeat(highWaterBytes));
    expect(await outcome()).toHaveLength(highWaterBytes);
    expect(noted).toEqual([]);
  });

  test('is not counted as silence of the upstream, which counts from the resumption', async () => {
    const { clock, queue, push, read } = setUp({ idleMs: 100 });
    push('x'.repeat(highWaterBytes));
    clock.advance(1_030);
    expect(queue.fault).toBeNull();
    await read();
    clock.advance(99);
    expect(queue.fault).toBeNull();
    clock.advance(1);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'idle_timeout' });
  });

  test('does not postpone the deadline for the whole call, which then is not the upstream’s fault', () => {
    const { clock, queue, push } = setUp({ idleMs: 100, totalMs: 5_000 });
    push('x'.repeat(highWaterBytes));
    clock.advance(4_999);
    expect(queue.fault).toBeNull();
    clock.advance(1);
    expect(queue.fault).toEqual({ kind: 'fault', fault: 'unread' });
  });
});

describe('a released body', () => {
  test('may end by itself, so that its connection is reused', () => {
    const { clock, noted, queue, push } = setUp();
    queue.release();
    clock.advance(graceMs - 1);
    push('more');
    queue.finish(null);
    clock.advance(graceMs);
    expect(noted).toEqual(['ended: properly']);
    expect(clock.scheduled).toBe(0);
  });

  test('is aborted when it does not end in time, however active it is and however often it is released', () => {
    const { clock, noted, queue, push } = setUp();
    queue.release();
    clock.advance(graceMs - 1);
    push('more');
    queue.release();
    expect(noted).toEqual([]);
    clock.advance(1);
    expect(noted).toEqual(['abort', 'ended: interrupted']);
    expect(clock.scheduled).toBe(0);
  });

  test('is resumed if it was paused, and is not paused again', () => {
    const { noted, queue, push } = setUp();
    push('x'.repeat(highWaterBytes));
    queue.release();
    push('x'.repeat(highWaterBytes));
    expect(noted).toEqual(['pause', 'resume']);
  });

  test('that has ended is not aborted', () => {
    const { clock, noted, queue } = setUp();
    queue.finish(null);
    queue.release();
    clock.advance(graceMs);
    expect(noted).toEqual(['ended: properly']);
  });
});
