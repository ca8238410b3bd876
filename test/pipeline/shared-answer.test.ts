import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { Blocks } from '../../src/pipeline/claims/kept-deltas.ts';
import { SharedAnswer } from '../../src/pipeline/claims/shared-answer.ts';
import { Delivery } from '../../src/pipeline/delivery/delivery.ts';
import type { Settled } from '../../src/pipeline/results.ts';
import { createChatStreamWriter } from '../../src/protocol/chat/write-answer.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { clientFacts } from '../support/client-facts.ts';

const identity = { id: '0'.repeat(32), createdAtSeconds: 1, model: 'small' };

/** A client whose connection the test fills and empties. */
interface Client {
  readonly delivery: Delivery;
  /** All that it got; `end` and `torn` stand for the end of its connection. */
  readonly text: () => string;
  /** Has it take no more until `read`. */
  fill(): void;
  read(): void;
  leave(): void;
  /** Has the next text that is sent fail. */
  breakNext(): void;
}

function connect(): Client {
  const parts: string[] = [];
  let isFull = false;
  let isBroken = false;
  let full: PromiseWithResolvers<void> | null = null;
  const leaves: (() => void)[] = [];
  const delivery = new Delivery(
    {
      ...clientFacts(identity.id, 'secret', {}),
      onGone: (callback) => void leaves.push(callback),
      answer: async (_head, body) => void parts.push(body, 'end'),
      open: () => {},
      send(text) {
        if (isBroken) throw new Error('broken');
        parts.push(text);
        if (!isFull) return undefined;
        full ??= Promise.withResolvers();
        return full.promise;
      },
      end: async (text) => void parts.push(text, 'end'),
      tearDown: async (text) => void parts.push(text, 'torn'),
    },
    {
      clock: createFakeClock(),
      signal: new AbortController().signal,
      headFacts: () => ({}) as never,
      onOpened: () => {},
      onFault: () => {},
    },
  );
  delivery.begin(createChatStreamWriter(identity, false, { usageCost: false, chargeComment: false }));
  delivery.permit();
  return {
    delivery,
    text: () => parts.join(''),
    fill: () => void (isFull = true),
    read() {
      isFull = false;
      full?.resolve();
      full = null;
    },
    leave: () => leaves.forEach((callback) => callback()),
    breakNext: () => void (isBroken = true),
  };
}

let takenBytes: number;
let mostBytes: number;
let listeners: number[];
beforeEach(() => {
  takenBytes = 0;
  mostBytes = Infinity;
  listeners = [];
});

function share(): SharedAnswer {
  const memory = {
    take(bytes: number) {
      if (takenBytes + bytes > mostBytes) return false;
      takenBytes += bytes;
      return true;
    },
    giveBack: (bytes: number) => void (takenBytes -= bytes),
    blocks: new Blocks(),
  };
  return new SharedAnswer(memory, (count) => void listeners.push(count));
}

const finish: Settled = {
  result: { kind: 'finished', reason: 'stop', rawReason: 'stop', usage: null },
  chargeNanos: null,
  endedAtSeconds: 7,
};

describe('a shared answer', () => {
  test('is the same for every client, whenever it comes and however it reads', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('send' as const), deltas: fc.array(fc.string(), { maxLength: 3 }) }),
      fc.record({ kind: fc.constantFrom('join' as const, 'fill' as const, 'read' as const), at: fc.nat(9) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const answer = share();
        const clients = [connect()];
        const listening = clients.map(({ delivery }) => answer.listen(delivery));
        for (const one of steps) {
          if (one.kind === 'send') answer.send(one.deltas);
          else if (one.kind === 'join') {
            const client = connect();
            clients.push(client);
            listening.push(answer.listen(client.delivery));
          } else clients[one.at % clients.length]?.[one.kind]();
          await setImmediate();
        }
        const ended = answer.end(finish);
        for (const client of clients) client.read();
        await ended;
        const late = connect();
        await Promise.all([...listening, answer.listen(late.delivery)]);
        const [whole] = [late.text()];
        // Parts are joined where a client has fallen behind: its bytes are the same.
        for (const client of clients) expect(client.text()).toBe(whole);
        expect(whole.endsWith('data: [DONE]\n\nend')).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test('waits for none but the fastest client, and for that', async () => {
    const answer = share();
    const [slow, fast] = [connect(), connect()];
    void answer.listen(slow.delivery);
    void answer.listen(fast.delivery);
    slow.fill();
    expect(answer.send(['a'])).toBe(true);
    fast.fill();
    expect(answer.send(['b'])).toBe(false);
    let isDrained = false;
    void answer.drained()?.then(() => (isDrained = true));
    await setImmediate();
    expect(isDrained).toBe(false);
    fast.read();
    await setImmediate();
    expect(isDrained).toBe(true);
    expect(answer.drained()).toBe(null);
    expect(fast.text()).toContain('"b"');
    expect(slow.text()).not.toContain('"b"');
  });

  test('waits no longer when the last client leaves, and goes on without any', async () => {
    const answer = share();
    const only = connect();
    const gone = answer.listen(only.delivery);
    only.fill();
    expect(answer.send(['a'])).toBe(false);
    const drained = answer.drained();
    only.leave();
    await Promise.all([drained, gone]);
    expect(answer.send(['b'])).toBe(true);
    expect(listeners).toEqual([1, 0]);
  });

  test('waits for no client any more when its request is stopped', async () => {
    const answer = share();
    const stalled = connect();
    void answer.listen(stalled.delivery);
    stalled.fill();
    expect(answer.send(['a'])).toBe(false);
    const drained = answer.drained();
    answer.stop();
    await drained;
    expect(answer.drained()).toBe(null);
  });

  test('that is too long is not kept: clients who keep up get all of it, one that has fallen behind is cut off', async () => {
    const answer = share();
    const [slow, fast] = [connect(), connect()];
    const slowGone = answer.listen(slow.delivery);
    const fastGone = answer.listen(fast.delivery);
    slow.fill();
    answer.send(['first']);
    answer.send(['x'.repeat(131_072)]);
    answer.send(['last']);
    expect(answer.isWhole).toBe(false);
    expect(takenBytes).toBe(0);
    slow.read();
    expect(await slowGone).toBe(false);
    expect(listeners).toEqual([1, 2, 1]);
    expect(slow.text().endsWith('torn')).toBe(true);
    await Promise.all([answer.end(finish), fastGone]);
    expect(fast.text()).toContain('"last"');
    expect(fast.text().endsWith('end')).toBe(true);
  });

  test('is not kept where there is no memory for it', () => {
    mostBytes = 30;
    const answer = share();
    answer.send(['12345']);
    expect([answer.isWhole, takenBytes]).toEqual([true, 18]);
    answer.send(['12345']);
    expect([answer.isWhole, takenBytes]).toEqual([false, 0]);
  });

  test('that is dropped while a client is being sent it cuts that client off', async () => {
    const answer = share();
    answer.send(['a']);
    await answer.end(finish);
    const late = connect();
    late.fill();
    const gone = answer.listen(late.delivery);
    answer.forget();
    late.read();
    await gone;
    // It had all of the text, and its end needs nothing that was kept.
    expect(late.text().endsWith('end')).toBe(true);
  });

  test.each([
    ['many small deltas', Array.from({ length: 5_000 }, (_, at) => ` ${at}`)],
    ['large deltas', Array.from({ length: 20 }, (_, at) => `${at} `.repeat(1_500))],
  ])(
    'of %s does not wait as a whole in memory for a client that comes later and reads slowly',
    async (_size, deltas) => {
      const answer = share();
      answer.send(deltas);
      await answer.end(finish);
      const late = connect();
      late.fill();
      const gone = answer.listen(late.delivery);
      const atFirst = late.text().length;
      expect(atFirst).toBeGreaterThan(0);
      late.read();
      expect(await gone).toBe(true);
      const quick = connect();
      expect(await answer.listen(quick.delivery)).toBe(true);
      expect(late.text()).toBe(quick.text());
      expect(atFirst).toBeLessThan(quick.text().length / 3);
      expect(atFirst).toBeLessThan(20_000);
    },
  );

  test('has its end for all who come later, also when it was torn down for the others', async () => {
    const answer = share();
    answer.send(['a']);
    await answer.end(finish);
    answer.tearDown();
    const late = connect();
    expect(await answer.listen(late.delivery)).toBe(true);
    expect(late.text().endsWith('data: [DONE]\n\nend')).toBe(true);
  });

  test('cuts a client off to which nothing can be sent, and sends it no end', async () => {
    const answer = share();
    const [broken, other] = [connect(), connect()];
    const failed = answer.listen(broken.delivery);
    const gone = answer.listen(other.delivery);
    answer.send(['one ']);
    broken.breakNext();
    answer.send(['two ']);
    await expect(failed).rejects.toThrow('broken');
    answer.send(['three']);
    await Promise.all([answer.end(finish), gone]);
    expect(broken.text().endsWith('torn')).toBe(true);
    expect(broken.text()).not.toContain('three');
    expect(other.text().endsWith('end')).toBe(true);
  });

  test('is not sent to a client whose request was stopped before it comes', async () => {
    const answer = share();
    answer.send(['a']);
    const stopped = connect();
    expect(await answer.listen(stopped.delivery, AbortSignal.abort())).toBe(false);
    answer.send(['b']);
    expect([stopped.text(), answer.listeners]).toEqual(['', 0]);
  });

  test('wakes the upstream when a client comes that keeps up', async () => {
    const answer = share();
    const slow = connect();
    slow.fill();
    void answer.listen(slow.delivery);
    expect(answer.send(['a'])).toBe(false);
    const waiting = answer.drained();
    void answer.listen(connect().delivery);
    await waiting;
    expect(answer.drained()).toBe(null);
  });

  test('goes on for the others when something is wrong with one client', async () => {
    const answer = share();
    const [broken, other] = [connect(), connect()];
    const failed = answer.listen(broken.delivery);
    const gone = answer.listen(other.delivery);
    await broken.delivery.tearDown();
    answer.send(['a']);
    await expect(failed).rejects.toThrow('delivery law broken');
    await Promise.all([answer.end(finish), gone]);
    expect(other.text()).toContain('"a"');
  });
});
