import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { RunningClaims } from '../../src/pipeline/claims/running-claims.ts';
import type { ClaimedRun } from '../../src/pipeline/claims/claimed-run.ts';
import type { Delivery } from '../../src/pipeline/delivery/delivery.ts';
import { createFakeClock } from '../support/fake-clock.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** The side of a client that reads all that it gets. */
function silentDelivery(onLeft: (left: () => void) => void = () => {}): Delivery {
  const sides = { onLeft, send: () => true, drained: () => null, conclude: async () => {} };
  return sides as unknown as Delivery;
}

function setUp({ replayMs = 120_000, graceMs = 10_000 } = {}) {
  const clock = createFakeClock();
  const claims = new RunningClaims({
    store: {} as never,
    peers: null,
    holdsLease: () => true,
    clock,
    settings: () => ({ graceMs, replayMs }),
  });
  let runs = 0;
  const stopped: string[] = [];
  /** A run whose answer has a text. */
  const run = (text: string, keyId = 'key'): ClaimedRun => {
    const begun = claims.begin({ keyId, name: String(++runs) }, `req_${runs}`);
    const request = { stream: true, model: 'small', responses: null } as never;
    begun.run({ request, id: '0', arrivedAtMs: 0, isNamed: true }, silentDelivery(), {
      left: () => {
        stopped.push(`left ${begun.requestId}`);
        return () => {};
      },
      lost: () => void stopped.push(`lost ${begun.requestId}`),
    });
    begun.answer.send([text]);
    return begun;
  };
  const find = ({ claim }: ClaimedRun) => (claim === null ? undefined : claims.find(claim));
  return { clock, claims, run, find, stopped };
}

describe('the claims of a process', () => {
  test('keep an answer that has ended for a while, and give its memory back', () => {
    const { clock, claims, run } = setUp();
    const kept = run('x'.repeat(1_000));
    claims.keep(kept);
    expect(claims.keptBytes).toBeGreaterThan(2_000 + 4_096);
    clock.advance(119_999);
    expect(claims.findRequest('key', kept.requestId)).toBe(kept);
    clock.advance(1);
    expect([claims.findRequest('key', kept.requestId), claims.keptBytes, clock.scheduled]).toEqual([
      undefined,
      0,
      0,
    ]);
  });

  test('keep an answer whose time is over as long as a client reads it', () => {
    const { clock, claims, run, find } = setUp();
    const kept = run('x');
    claims.keep(kept);
    const leave = claims.join(kept);
    clock.advance(150_000);
    expect(find(kept)).toBe(kept);
    leave?.();
    clock.advance(1_000);
    expect([find(kept), claims.keptBytes, clock.scheduled]).toEqual([undefined, 0, 0]);
  });

  test('keep no answer where the time for it is 0', () => {
    const { claims, run, find } = setUp({ replayMs: 0 });
    const ended = run('x');
    claims.keep(ended);
    ended.leave();
    expect([find(ended), claims.keptBytes]).toEqual([undefined, 0]);
  });

  test('drop the oldest answers that have ended where memory is used up, and never one that runs', () => {
    const { claims, run, find } = setUp();
    const text = 'x'.repeat(100_000);
    const running = run(text);
    const ended = Array.from({ length: 400 }, (_, at) => {
      const one = run(text, `key ${at % 8}`);
      claims.keep(one);
      return one;
    });
    expect(claims.keptBytes).toBeLessThanOrEqual(64 * 1_048_576);
    expect(claims.keptBytes).toBeGreaterThan(63 * 1_048_576);
    expect(find(running)).toBe(running);
    expect(running.answer.isWhole).toBe(true);
    const left = ended.filter((one) => find(one) !== undefined);
    expect(left).toEqual(ended.slice(-left.length));
    claims.close();
    expect([...ended].filter((one) => find(one) !== undefined)).toEqual([]);
  });

  test('of one key take no more than a quarter of the memory: its own oldest ones are dropped, and none of another key', () => {
    const { claims, run, find } = setUp();
    const other = run('x', 'other');
    claims.keep(other);
    const text = 'x'.repeat(100_000);
    const ended = Array.from({ length: 200 }, () => {
      const one = run(text);
      claims.keep(one);
      return one;
    });
    expect(claims.keptBytes).toBeLessThanOrEqual(16 * 1_048_576 + 10_000);
    expect(claims.keptBytes).toBeGreaterThan(15 * 1_048_576);
    const left = ended.filter((one) => find(one) !== undefined);
    expect(left).toEqual(ended.slice(-left.length));
    expect(find(other)).toBe(other);
    const running = Array.from({ length: 90 }, () => run(text));
    // All of its memory is that of answers that run: what does not fit is not kept.
    expect(running.filter(({ answer }) => answer.isWhole).length).toBe(83);
    expect(find(other)).toBe(other);
    claims.close();
    for (const one of running) one.leave();
    expect(claims.keptBytes).toBe(0);
  });

  test('keep nothing of what a request was made of, once that has failed', async () => {
    const { claims } = setUp();
    const failed = claims.begin({ keyId: 'key', name: 'failed' }, 'req_failed');
    const promptOf = (): WeakRef<object> => {
      const prompt = { text: 'x'.repeat(1_000) };
      const keepsPrompt = (): (() => void) => () => void prompt.text;
      failed.run(
        { request: { responses: {} } as never, id: '0', arrivedAtMs: 0, isNamed: true },
        silentDelivery(),
        { left: keepsPrompt, lost: () => void prompt.text },
      );
      return new WeakRef(prompt);
    };
    const prompt = promptOf();
    failed.free();
    await failed.conclude({
      result: { kind: 'interrupted', interruption: 'cancelled', usage: null },
      chargeNanos: 0,
      endedAtSeconds: 0,
    });
    failed.leave();
    await setImmediate();
    collectGarbage();
    expect(claims.findRequest('key', 'req_failed')).toBe(failed);
    expect(prompt.deref()).toBe(undefined);
  });

  test('of what has failed at no cost take the place of no answer', () => {
    const { claims, run, find } = setUp();
    const answers = Array.from({ length: 8 }, (_, at) => {
      const one = run('x'.repeat(100_000), `key ${at}`);
      claims.keep(one);
      return one;
    });
    const instructions = 'x'.repeat(7_500_000);
    for (let at = 0; at < 10; at++) {
      const name = `failed ${at}`;
      const failed = claims.begin({ keyId: name, name }, `req_${name}`);
      failed.run(
        { request: { responses: { instructions } } as never, id: '0', arrivedAtMs: 0, isNamed: true },
        silentDelivery(),
        { left: () => () => {}, lost: () => {} },
      );
      failed.free();
      void failed.conclude({
        result: { kind: 'interrupted', interruption: 'cancelled', usage: null },
        chargeNanos: 0,
        endedAtSeconds: 0,
      });
      failed.leave();
    }
    expect(claims.keptBytes).toBeLessThanOrEqual(64 * 1_048_576);
    expect(claims.findRequest('failed 0', 'req_failed 0')).not.toBe(undefined);
    expect(claims.findRequest('failed 9', 'req_failed 9')).toBe(undefined);
    expect(answers.every((one) => find(one) === one)).toBe(true);
  });

  test('bound the clients that join one request, and those of a key', () => {
    const { claims, run } = setUp();
    const [one, two, three] = [run('a'), run('b'), run('c')];
    const leaving = Array.from({ length: 8 }, () => claims.join(one));
    expect(leaving).not.toContain(null);
    expect(claims.join(one)).toBe(null);
    for (let joined = 0; joined < 8; joined++) expect(claims.join(two)).not.toBe(null);
    expect(claims.join(three)).toBe(null);
    expect(claims.join(run('d', 'other'))).not.toBe(null);
    leaving[0]?.();
    expect(claims.join(three)).not.toBe(null);
  });

  test('stop a run without clients at once when its answer is too long to be kept, and else after the grace', () => {
    const { clock, claims, stopped } = setUp();
    const leaves: (() => void)[] = [];
    const begin = (name: string): ClaimedRun => {
      const begun = claims.begin({ keyId: 'key', name }, name);
      const delivery = silentDelivery((left) => void leaves.push(left));
      begun.run({ request: {} as never, id: '0', arrivedAtMs: 0, isNamed: true }, delivery, {
        left: () => {
          stopped.push(name);
          return () => {};
        },
        lost: () => {},
      });
      return begun;
    };
    const tooLong = 'x'.repeat(131_072);
    begin('long before').answer.send([tooLong]);
    leaves.pop()?.();
    expect(stopped).toEqual(['long before']);
    const later = begin('long afterwards');
    leaves.pop()?.();
    expect(stopped).toHaveLength(1);
    later.answer.send([tooLong]);
    expect(stopped).toEqual(['long before', 'long afterwards']);
    begin('short').answer.send(['x']);
    leaves.pop()?.();
    clock.advance(9_999);
    expect(stopped).toHaveLength(2);
    clock.advance(1);
    expect(stopped).toEqual(['long before', 'long afterwards', 'short']);
  });

  test('stop what runs when the lease on them has ended, and not what has ended', () => {
    const { claims, run, stopped } = setUp();
    const [running, ended] = [run('a'), run('b')];
    claims.keep(ended);
    claims.leaseEnded();
    expect(stopped).toEqual([`lost ${running.requestId}`]);
    expect(claims.lostLeases).toBe(1);
  });
});
