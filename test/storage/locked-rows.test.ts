import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { KeyLockedError, StorageError } from '../../src/domain/storage-refusal.ts';
import { AnsweredError } from '../../src/storage/postgres/connection/failures.ts';
import { LockedRows } from '../../src/storage/postgres/locked-rows.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const lockTimeout = new AnsweredError('canceling statement due to lock timeout', '55P03');

/** Calls that are answered when the test says so. */
function setUp() {
  const clock = createFakeClock();
  const locked = new LockedRows(clock);
  const sent: (PromiseWithResolvers<string> & { readonly rows: string })[] = [];
  const ended: string[] = [];
  const call = (rows = 'a'): Promise<string> => {
    const made = locked.run(rows, () => {
      const answer = { ...Promise.withResolvers<string>(), rows };
      sent.push(answer);
      return answer.promise;
    });
    made.then(
      () => ended.push('made'),
      (error: StorageError) => ended.push(error instanceof KeyLockedError ? 'locked' : error.reason),
    );
    return made;
  };
  return {
    clock,
    locked,
    sent,
    ended,
    call,
    /** Calls, and has the call wait for a lock to no avail. */
    fail: async (rows = 'a'): Promise<void> => {
      const failed = call(rows).catch((error: KeyLockedError) => error.isAnswer);
      sent.at(-1)?.reject(lockTimeout);
      expect(await failed).toBe(true);
    },
  };
}

test('calls for locked rows are refused at once for 3 seconds, and those for other rows are made', async () => {
  const { clock, sent, call, fail } = setUp();
  await fail();
  clock.advance(2_999);
  await expect(call()).rejects.toMatchObject({ reason: 'locked', isPermanent: false, isAnswer: false });
  void call('b');
  expect(sent.map(({ rows }) => rows)).toEqual(['a', 'b']);
});

test('after that one call is a trial; the others wait for it, and are refused only if it fails', async () => {
  const { clock, sent, ended, call, fail } = setUp();
  await fail();
  clock.advance(3_000);
  for (let number = 0; number < 3; number++) void call().catch(() => {});
  await setImmediate();
  expect([sent.length, ended]).toEqual([2, ['locked']]);
  sent[1]?.reject(lockTimeout);
  await setImmediate();
  expect([sent.length, ended]).toEqual([2, ['locked', 'locked', 'locked', 'locked']]);
  clock.advance(2_999);
  await expect(call()).rejects.toBeInstanceOf(KeyLockedError);
  clock.advance(1);
  const made = [call(), call(), call()];
  expect(sent).toHaveLength(3);
  sent[2]?.resolve('trial');
  await setImmediate();
  expect([sent.length, await made[0]]).toEqual([5, 'trial']);
});

test('an hour after a lock calls that come at once are made', async () => {
  const { clock, sent, call, fail } = setUp();
  await fail();
  clock.advance(3_600_000);
  const both = [call(), call()];
  sent[1]?.resolve('first');
  await setImmediate();
  sent[2]?.resolve('second');
  expect(await Promise.all(both)).toEqual(['first', 'second']);
});

test('a trial that fails for another reason, such as a lost connection, is followed by the next one at once', async () => {
  const { clock, sent, ended, call, fail } = setUp();
  await fail();
  clock.advance(3_000);
  void call().catch(() => {});
  void call().catch(() => {});
  sent[1]?.reject(new StorageError('the connection was lost'));
  await setImmediate();
  expect([sent.length, ended]).toEqual([3, ['locked', 'unavailable']]);
  void call().catch(() => {});
  expect(sent).toHaveLength(3);
});

test('no more than 2 calls are sent at once; the others follow in their order, and are refused with those that wait', async () => {
  const { sent, ended, call } = setUp();
  const calls = Array.from({ length: 6 }, () => call());
  for (const each of calls) each.catch(() => {});
  expect(sent).toHaveLength(2);
  sent[0]?.resolve('first');
  sent[1]?.resolve('second');
  await setImmediate();
  expect([sent.length, await calls[0], await calls[1]]).toEqual([4, 'first', 'second']);
  sent[2]?.reject(lockTimeout);
  await setImmediate();
  expect([sent.length, ended]).toEqual([4, ['made', 'made', 'locked', 'locked', 'locked']]);
});

test('none is sent behind one that is late, and others once it is answered', async () => {
  const { clock, sent, call } = setUp();
  void call('early');
  void call();
  clock.advance(99);
  void call('early');
  expect(sent).toHaveLength(3);
  clock.advance(1);
  void call();
  void call();
  expect(sent).toHaveLength(3);
  sent[1]?.resolve('made');
  await setImmediate();
  expect(sent).toHaveLength(5);
});

test('a deadlock, and what else fails, refuses no further calls', async () => {
  const { sent, call } = setUp();
  for (const code of ['40P01', '57014', '23505']) {
    const made = call();
    sent.at(-1)?.reject(new AnsweredError('failed', code));
    await expect(made).rejects.toMatchObject({ code });
  }
  expect(sent).toHaveLength(3);
});

test('calls are refused for 1,000 rows at a time: beyond that the earliest refusal ends', async () => {
  const { sent, call, fail } = setUp();
  for (let number = 0; number <= 1_000; number++) await fail(`row ${number}`);
  const { length } = sent;
  void call('row 0');
  expect(sent).toHaveLength(length + 1);
  await expect(call('row 1')).rejects.toBeInstanceOf(KeyLockedError);
});

test('10,000 calls may wait, and more are refused', async () => {
  const { call } = setUp();
  for (let number = 0; number < 10_002; number++) void call();
  await expect(call()).rejects.toMatchObject({ reason: 'slow' });
});

test('the end waits for the calls that were handed in', async () => {
  const { locked, sent, call } = setUp();
  await locked.drain();
  const calls = Array.from({ length: 3 }, () => call());
  let isDrained = false;
  // As by two calls of close.
  const drained = [locked.drain().then(() => (isDrained = true)), locked.drain()];
  for (const { resolve } of sent.slice(0, 2)) resolve('made');
  await setImmediate();
  expect([isDrained, sent.length]).toEqual([false, 3]);
  sent[2]?.resolve('made');
  await Promise.all(drained);
  expect(await Promise.all(calls)).toHaveLength(3);
});
