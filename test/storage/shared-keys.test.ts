import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { followChanges, maxUnconfirmedMs } from '../../src/background/follow-changes.ts';
import { mintKey } from '../../src/domain/keys/api-key.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { isRefusal } from '../../src/shared/errors.ts';
import { createKeyDirectory } from '../../src/storage/keys/key-directory.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';
import { payingKey } from '../support/stored-rows.ts';

const { secret } = mintKey(Buffer.alloc(44, '1'));

/** A directory of keys that other processes change, over a store with one key that answers when the test says so. */
function startShared() {
  const clock = createFakeClock();
  const state: { key: ApiKey | null; fault: Error | null } = { key: payingKey, fault: null };
  const lookUps: (() => void)[] = [];
  const store = {
    async findKeyByHash() {
      const read = state.key;
      await new Promise<void>((resolve) => lookUps.push(resolve));
      if (state.fault !== null) throw state.fault;
      return read;
    },
    findKeyById: async () => null,
  };
  const reports = { onFault: () => {}, onShed: () => {} };
  const directory = createKeyDirectory(store, clock, reports, { maxUnconfirmedMs });
  /** Finds the key while the store answers at once. */
  const find = async () => {
    const found = directory.find(secret);
    await setImmediate();
    lookUps.at(-1)?.();
    return found;
  };
  return { clock, state, lookUps, directory, find };
}

describe('keys that other processes change', () => {
  test('are cached as long as reads of their changes confirm them, and are looked up each time otherwise', async () => {
    const { clock, lookUps, directory, find } = startShared();
    await find();
    await find();
    expect(lookUps).toHaveLength(2);
    directory.confirm(0);
    clock.advance(2_000);
    expect(await directory.find(secret)).toEqual(payingKey);
    expect(lookUps).toHaveLength(2);
    clock.advance(1);
    expect(await find()).toEqual(payingKey);
    await find();
    expect(lookUps).toHaveLength(4);
    directory.confirm(2_001);
    expect(await directory.find(secret)).toEqual(payingKey);
    expect(lookUps).toHaveLength(4);
  });

  test('are refused when they are not confirmed and the store fails', async () => {
    const { clock, state, directory, find } = startShared();
    await find();
    directory.confirm(0);
    state.fault = new StorageError('the database is away');
    expect(await directory.find(secret)).toEqual(payingKey);
    clock.advance(2_001);
    expect(await find()).toMatchObject({ code: 'storage_unavailable', retryAfterMs: 5_000 });
  });

  test('are looked up again when the answer took longer than two seconds, and are refused when the next one does', async () => {
    const { clock, state, lookUps, directory } = startShared();
    const found = directory.find(secret);
    clock.advance(1_500);
    const joined = directory.find(secret);
    expect(lookUps).toHaveLength(1);
    clock.advance(501);
    state.key = null;
    lookUps[0]?.();
    await setImmediate();
    expect(lookUps).toHaveLength(2);
    lookUps[1]?.();
    expect([await found, await joined]).toEqual([null, null]);

    state.key = payingKey;
    const slow = directory.find(secret);
    for (const at of [2, 3]) {
      await setImmediate();
      clock.advance(2_001);
      lookUps[at]?.();
    }
    expect(await slow).toMatchObject({ code: 'storage_unavailable' });
    expect(lookUps).toHaveLength(4);
  });

  test('are found by an answer that took long, where reads of their changes found none meanwhile', async () => {
    const { clock, lookUps, directory } = startShared();
    const found = directory.find(secret);
    clock.advance(5_000);
    directory.confirm(4_000);
    lookUps[0]?.();
    expect(await found).toEqual(payingKey);
    expect(lookUps).toHaveLength(1);
  });

  test('are not found by a second answer that a confirmed change has outdated', async () => {
    const { clock, state, lookUps, directory } = startShared();
    const found = directory.find(secret);
    directory.forgetAll();
    lookUps[0]?.();
    await setImmediate();
    expect(lookUps).toHaveLength(2);
    // The key is revoked while the second answer is on its way, and a read has found that.
    state.key = null;
    clock.advance(3_000);
    directory.forgetAll();
    directory.confirm(2_500);
    lookUps[1]?.();
    expect(await found).toMatchObject({ code: 'storage_unavailable' });
  });

  test.each([0, 1, 2, 3, 4, 5, 6, 7])(
    'are not cached where a change is told %i steps after the answer, before it is kept',
    async (steps) => {
      const { state, lookUps, directory, find } = startShared();
      directory.confirm(0);
      const found = directory.find(secret);
      lookUps[0]?.();
      state.key = null;
      for (let step = 0; step < steps; step++) await Promise.resolve();
      directory.forgetAll();
      await setImmediate();
      lookUps[1]?.();
      await found;
      expect(await find()).toBeNull();
    },
  );

  test('are never found more than two seconds after their revocation, however reads hang, fail and return', async () => {
    const delay = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 9_000 }));
    const read = fc.record({ delay, part: fc.double({ min: 0, max: 1, noNaN: true }), fails: fc.boolean() });
    let foundEver = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(read, { minLength: 1, maxLength: 12 }),
        fc.array(read, { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 0, max: 6_000 }),
        async (polls, lookUps, revokedMs) => {
          const found = await runHistory({ polls, lookUps, revokedMs });
          expect(found.filter((atMs) => atMs > revokedMs + maxUnconfirmedMs)).toEqual([]);
          foundEver += found.length;
        },
      ),
      propertyRun(150),
    );
    // Histories in which no key is ever found would prove nothing. They find it 1,300 times on average.
    expect(foundEver).toBeGreaterThan(100);
  });
});

/** How a read of the database goes: its duration, when in it the database is read, and whether it fails. */
interface Read {
  readonly delay: number;
  readonly part: number;
  readonly fails: boolean;
}

/** A request every 100 ms for 12 s, of a key that is revoked by another process. Returns when the key was found. */
async function runHistory({
  polls,
  lookUps,
  revokedMs,
}: {
  readonly polls: readonly Read[];
  readonly lookUps: readonly Read[];
  readonly revokedMs: number;
}): Promise<readonly number[]> {
  const clock = createFakeClock();
  const isRevoked = (): boolean => clock.monotonicMs() >= revokedMs;
  /** Reads a value at some moment of a read. */
  const reader = <Result>(reads: readonly Read[], value: () => Result): (() => Promise<Result>) => {
    let count = 0;
    return () => {
      const { delay, part, fails } = reads[count++ % reads.length] as Read;
      return new Promise((resolve, reject) => {
        clock.schedule(delay * part, () => {
          const result = value();
          clock.schedule(delay * (1 - part), () =>
            fails ? reject(new StorageError('the database is away')) : resolve(result),
          );
        });
      });
    };
  };
  const store = {
    findKeyByHash: reader(lookUps, () => (isRevoked() ? null : payingKey)),
    findKeyById: async () => null,
  };
  const reports = { onFault: () => {}, onShed: () => {} };
  const keys = createKeyDirectory(store, clock, reports, { maxUnconfirmedMs });
  const find = reader(polls, () => ({ keyChanges: isRevoked() ? 1 : 0, cancelled: [], lacksName: false }));
  const running = { cancel: async () => false };
  const changes = { find, acknowledge: async () => {} };
  const follower = followChanges(
    changes,
    { keys, running },
    { ready: Promise.resolve(), clock, onFault: () => {} },
  );
  const foundAt: number[] = [];
  for (let step = 0; step < 120; step++) {
    void keys.find(secret).then((found) => {
      if (found !== null && !isRefusal(found)) foundAt.push(clock.monotonicMs());
    });
    await setImmediate();
    clock.advance(50);
    await setImmediate();
    clock.advance(50);
  }
  const stopped = follower.stop();
  clock.advance(60_000);
  await stopped;
  return foundAt;
}
