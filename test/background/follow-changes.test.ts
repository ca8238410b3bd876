import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { followChanges } from '../../src/background/follow-changes.ts';
import type { FoundChanges } from '../../src/domain/ports/shared-changes.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const nothing: FoundChanges = { keyChanges: 7, cancelled: [], lacksName: false };

/** Follows changes that the test answers; `done` lists what the process did. */
function follow(ready: Promise<void> = Promise.resolve()) {
  const clock = createFakeClock();
  const done: string[] = [];
  const faults: string[] = [];
  const reads: PromiseWithResolvers<FoundChanges>[] = [];
  const acknowledged: { found: FoundChanges; answer: PromiseWithResolvers<void> }[] = [];
  const follower = followChanges(
    {
      find() {
        const read = Promise.withResolvers<FoundChanges>();
        reads.push(read);
        return read.promise;
      },
      acknowledge(found) {
        const answer = Promise.withResolvers<void>();
        acknowledged.push({ found, answer });
        return answer.promise;
      },
    },
    {
      keys: {
        forgetAll: () => void done.push('forget'),
        confirm: (atMs) => void done.push(`confirm ${atMs}`),
      },
      running: {
        async cancel(requestId) {
          done.push(`cancel ${requestId}`);
          return true;
        },
      },
    },
    { ready, clock, onFault: (message) => void faults.push(message) },
  );
  onTestFinished(() => {
    for (const { answer } of acknowledged) answer.resolve();
    for (const read of reads) read.resolve(nothing);
    return follower.stop();
  });
  /** Advances the time, and lets what became due run. */
  const advance = async (durationMs: number): Promise<void> => {
    await setImmediate();
    clock.advance(durationMs);
    await setImmediate();
  };
  const answer = async (found: Partial<FoundChanges> = {}): Promise<void> => {
    reads.at(-1)?.resolve({ ...nothing, ...found });
    await setImmediate();
  };
  return { clock, done, faults, reads, acknowledged, follower, advance, answer };
}

test('a read a second confirms cached keys as of its beginning, and empties the cache when keys have changed', async () => {
  const { done, reads, advance, answer } = follow();
  await advance(0);
  await advance(300);
  await answer();
  expect(done.splice(0)).toEqual(['forget', 'confirm 0']);
  await advance(999);
  expect(reads).toHaveLength(1);
  await advance(1);
  await answer();
  expect(done.splice(0)).toEqual(['confirm 1300']);
  await advance(1_000);
  await answer({ keyChanges: 8 });
  expect(done).toEqual(['forget', 'confirm 2300']);
});

test('a read that takes longer than two seconds has failed, and the next one empties the cache', async () => {
  const { done, faults, reads, advance, answer } = follow();
  await advance(0);
  await answer();
  await advance(1_000);
  done.length = 0;
  await advance(2_000);
  expect(faults).toEqual(['changes by other processes could not be read']);
  // The answer that comes too late says what was true before the cache was used again.
  await answer();
  expect(done).toEqual([]);
  await advance(1_000);
  expect(reads).toHaveLength(3);
  await answer();
  expect(done).toEqual(['forget', 'confirm 4000']);
});

test('a read that fails confirms nothing, and is repeated', async () => {
  const { done, faults, reads, advance, answer } = follow();
  await advance(0);
  reads[0]?.reject(new StorageError('the database is away'));
  await advance(1_000);
  expect([done, faults.length]).toEqual([[], 1]);
  await answer();
  expect(done).toEqual(['forget', 'confirm 1000']);
});

test('cancelled requests are stopped, and their cancellations removed while the next read goes on', async () => {
  const { done, reads, acknowledged, faults, advance, answer } = follow();
  await advance(0);
  await answer({ cancelled: ['req_1', 'req_2'] });
  expect(done.splice(0)).toEqual(['forget', 'confirm 0', 'cancel req_1', 'cancel req_2']);
  expect(acknowledged.map(({ found }) => found.cancelled)).toEqual([['req_1', 'req_2']]);
  // The removal hangs: neither does the next read wait for it, nor is it begun twice.
  await advance(1_000);
  expect(reads).toHaveLength(2);
  await answer({ cancelled: ['req_1', 'req_2'] });
  expect(acknowledged).toHaveLength(1);
  acknowledged[0]?.answer.reject(new StorageError('locked', 'slow'));
  await advance(1_000);
  expect(faults).toEqual(['cancellations by other processes could not be removed']);
  await answer({ cancelled: ['req_2'] });
  expect(acknowledged.map(({ found }) => found.cancelled)).toEqual([['req_1', 'req_2'], ['req_2']]);
});

test('a lease without a name is named', async () => {
  const { acknowledged, advance, answer } = follow();
  await advance(0);
  await answer({ lacksName: true });
  expect(acknowledged).toHaveLength(1);
});

test('nothing is read of a database that is not open yet, or never opens', async () => {
  const opening = Promise.withResolvers<void>();
  const { reads, faults, advance, clock } = follow(opening.promise);
  await advance(60_000);
  expect(reads).toHaveLength(0);
  opening.reject(new Error('it is away'));
  await advance(60_000);
  expect([reads.length, faults.length, clock.scheduled]).toEqual([0, 0, 0]);
});

test('the end waits for a removal that is under way, and nothing is read after it', async () => {
  const { clock, reads, acknowledged, follower, advance, answer } = follow();
  await advance(0);
  await answer({ cancelled: ['req_1'] });
  let isStopped = false;
  const stopped = follower.stop().then(() => (isStopped = true));
  await setImmediate();
  expect(isStopped).toBe(false);
  acknowledged[0]?.answer.resolve();
  await stopped;
  await advance(10_000);
  expect([reads.length, clock.scheduled]).toEqual([1, 0]);
});
