import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { keepLease } from '../../src/background/keep-lease.ts';
import type { LeaseOptions } from '../../src/background/keep-lease.ts';
import type { RecordLeases } from '../../src/domain/ports/leases.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** Keeps a lease that the test scripts: `asked` has what was asked of the database, with the times. */
async function start(options: Partial<LeaseOptions> = {}, script: Partial<RecordLeases> = {}) {
  const clock = createFakeClock();
  const asked: string[] = [];
  const faults: string[] = [];
  const state: { fault: Error | null; over: readonly string[] } = { fault: null, over: [] };
  const note = (what: string): void => {
    asked.push(`${what} ${clock.monotonicMs()}`);
    if (state.fault !== null) throw state.fault;
  };
  const keeper = keepLease(
    {
      owner: () => 'owner',
      async renewLease() {
        note('renew');
        return false;
      },
      async endOverLeases() {
        note('look');
        const { over } = state;
        state.over = [];
        return over;
      },
      endLease: async () => note('end'),
      ...script,
    },
    {
      clock,
      ready: Promise.resolve(),
      onEnded: async () => {},
      onFault: (message) => void faults.push(message),
      ...options,
    },
  );
  await setImmediate();
  return {
    clock,
    keeper,
    state,
    asked,
    faults,
    /** Advances in steps of half a second, and lets each look end. */
    pass: async (durationMs: number): Promise<void> => {
      for (let passedMs = 0; passedMs < durationMs; passedMs += 500) {
        clock.advance(Math.min(500, durationMs - passedMs));
        await setImmediate();
      }
    },
    /** What was asked since the last call, but for the looks. */
    changes: () => asked.splice(0).filter((what) => !what.startsWith('look')),
  };
}

describe('the lease of a process', () => {
  test('is taken as soon as the database is open, before anything that waits for it', async () => {
    const opening = Promise.withResolvers<void>();
    const { keeper, asked } = await start({ ready: opening.promise });
    expect([asked, keeper.holds]).toEqual([[], false]);
    opening.resolve();
    await keeper.taken;
    expect([asked, keeper.holds]).toEqual([['renew 0'], true]);
    await keeper.stop();
  });

  test('is renewed at once when that is asked for, by one call however often, and then again after its usual time', async () => {
    const { keeper, pass, changes } = await start();
    await pass(2_000);
    changes();
    await Promise.all([keeper.renew(), keeper.renew()]);
    expect(changes()).toEqual(['renew 2000']);
    await pass(5_000);
    expect(changes()).toEqual(['renew 7000']);
    await keeper.stop();
  });

  test('is not waited for where the database does not give it, and taken soon after', async () => {
    let tries = 0;
    const renewLease = async (): Promise<boolean> => {
      if (++tries < 3) throw new Error('it is away');
      return false;
    };
    const { keeper, asked, faults, pass } = await start({}, { renewLease });
    await keeper.taken;
    expect([keeper.holds, faults]).toEqual([false, ['leases could not be renewed or ended']]);
    await pass(500);
    expect([tries, keeper.holds, asked]).toEqual([2, false, []]);
    await pass(500);
    expect([tries, keeper.holds, asked]).toEqual([3, true, []]);
    await pass(4_500);
    expect([tries, asked]).toEqual([3, ['look 5500']]);
    await keeper.stop();
  });

  test('is renewed also while what others held is being given back', async () => {
    const { keeper, state, pass, changes } = await start({ onEnded: () => new Promise(() => {}) });
    state.over = ['another'];
    await pass(10_000);
    expect(changes()).toEqual(['renew 0', 'renew 5000', 'renew 10000']);
    expect(keeper.holds).toBe(true);
  });

  test('is asked of no database that can not be opened', async () => {
    const opening = Promise.reject(new Error('no such folder'));
    const { keeper, asked, faults, pass } = await start({ ready: opening });
    await expect(keeper.taken).rejects.toThrow('no such folder');
    await pass(20_000);
    await keeper.stop();
    expect([asked, faults]).toEqual([[], []]);
  });

  test('is renewed every five seconds, and those of others are looked at every half second', async () => {
    const { keeper, asked, pass } = await start();
    await pass(10_000);
    expect(asked.filter((what) => what.startsWith('renew'))).toEqual([
      'renew 0',
      'renew 5000',
      'renew 10000',
    ]);
    expect(asked.filter((what) => what.startsWith('look'))).toHaveLength(20);
    await keeper.stop();
  });

  test('is held for 15 seconds from the beginning of its last renewal, and again after the next one', async () => {
    const answered = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()];
    let renewals = 0;
    const renewLease = (): Promise<boolean> => answered[renewals++]?.promise ?? new Promise(() => {});
    const { keeper, pass } = await start({}, { renewLease });
    await pass(3_000);
    answered[0]?.resolve(false);
    await setImmediate();
    await pass(11_999);
    expect([renewals, keeper.holds]).toEqual([2, true]);
    await pass(1);
    expect(keeper.holds).toBe(false);
    answered[1]?.resolve(false);
    await setImmediate();
    // That one began five seconds after the first one at the latest, and was answered at 15 seconds.
    expect(keeper.holds).toBe(true);
    await keeper.stop();
  });

  test('is tried again every half second while the database is away, with one line in the log for ten seconds', async () => {
    const { keeper, state, faults, pass, changes } = await start();
    await pass(4_500);
    changes();
    state.fault = new Error('it is away');
    await pass(1_500);
    expect(changes()).toEqual(['renew 5000', 'renew 5500', 'renew 6000']);
    expect(faults).toEqual(['leases could not be renewed or ended']);
    state.fault = null;
    await pass(5_500);
    expect(changes()).toEqual(['renew 6500', 'renew 11500']);
    expect(faults).toHaveLength(1);
    await keeper.stop();
  });

  test('that others had ended is reported', async () => {
    const { keeper, faults } = await start({}, { renewLease: async () => true });
    expect(faults).toEqual([
      'the lease of this process had ended: its open records may have been closed as lost',
    ]);
    await keeper.stop();
  });

  test('tells those who follow it when others had ended it, and shortly before they may', async () => {
    const told: string[] = [];
    const { clock, keeper, state, pass } = await start();
    keeper.follow((what) => void told.push(`${what} ${clock.monotonicMs()}`));
    await pass(20_000);
    expect(told).toEqual([]);
    // The last renewal was at 20,000: the lease is over at 35,000.
    state.fault = new Error('away');
    await pass(14_000);
    expect(told).toEqual([]);
    await pass(10_000);
    expect(told).toEqual(['may_end 34500']);
    state.fault = null;
    await pass(20_000);
    expect(told).toHaveLength(1);
    await keeper.stop();
    await pass(20_000);
    expect(told).toHaveLength(1);
  });
});

describe('the leases of others', () => {
  test('are ended with what they held given back at once, and once more if that fails', async () => {
    let tries = 0;
    const onEnded = async (): Promise<void> => {
      if (++tries === 1) throw new Error('it is away');
    };
    const { keeper, state, faults, pass } = await start({ onEnded });
    state.over = ['a', 'b'];
    await pass(500);
    expect(tries).toBe(1);
    await pass(2_000);
    expect(tries).toBe(2);
    expect(faults).toEqual([
      'the lease of a process was over and is ended',
      'the lease of a process was over and is ended',
      'leases could not be renewed or ended',
    ]);
    await keeper.stop();
  });

  test('may have been ended although the answer was lost: what they held is given back all the same', async () => {
    let [looks, given] = [0, 0];
    const endOverLeases = async (): Promise<readonly string[]> => {
      if (++looks === 1) throw new Error('the connection was lost');
      return [];
    };
    const onEnded = async (): Promise<void> => void given++;
    const { keeper, pass } = await start({ onEnded }, { endOverLeases });
    await pass(500);
    expect([looks, given]).toEqual([1, 0]);
    await pass(500);
    expect([looks, given]).toEqual([1, 1]);
    await pass(4_500);
    expect([looks, given]).toEqual([2, 1]);
    await keeper.stop();
  });

  test('are not ended for five seconds after a failure of the database, which may have kept others from renewing', async () => {
    const { keeper, state, asked, pass } = await start();
    await pass(1_000);
    state.fault = new Error('it is away');
    await pass(6_000);
    state.fault = null;
    asked.length = 0;
    await pass(4_500);
    expect(asked.filter((what) => what.startsWith('look'))).toEqual([]);
    await pass(1_000);
    expect(asked.filter((what) => what.startsWith('look'))).toEqual(['look 12000', 'look 12500']);
    await keeper.stop();
  });

  test('are not ended for five seconds after a pause of this process, in which the database may have been away', async () => {
    const { clock, state, asked, pass } = await start();
    await pass(1_000);
    clock.advance(8_000);
    await setImmediate();
    asked.length = 0;
    state.over = ['other'];
    await pass(4_500);
    expect(asked.filter((what) => what.startsWith('look'))).toEqual([]);
    await pass(1_000);
    expect(state.over).toEqual([]);
  });

  test('are not looked at by a process that does not hold its own', async () => {
    const { keeper, asked, pass } = await start(
      {},
      { renewLease: () => Promise.reject(new Error('it is away')) },
    );
    await pass(20_000);
    expect(asked).toEqual([]);
    await keeper.stop();
  });
});

describe('the stop', () => {
  test('ends the lease after what is under way, and renews nothing afterwards', async () => {
    const renewal = Promise.withResolvers<boolean>();
    const { keeper, asked, pass } = await start({}, { renewLease: () => renewal.promise });
    const stopped = keeper.stop();
    await setImmediate();
    expect(asked).toEqual([]);
    renewal.resolve(false);
    await stopped;
    expect([asked, keeper.holds]).toEqual([['end 0'], false]);
    await pass(20_000);
    expect(asked).toEqual(['end 0']);
  });

  test('waits for two seconds at the most for a database that does not answer', async () => {
    const { clock, keeper, faults } = await start({}, { endLease: () => new Promise(() => {}) });
    let isStopped = false;
    const stopped = keeper.stop().then(() => (isStopped = true));
    clock.advance(1_999);
    await setImmediate();
    expect(isStopped).toBe(false);
    clock.advance(1);
    await stopped;
    expect([faults, clock.scheduled]).toEqual([[], 0]);
  });

  test('before the database was opened takes no lease', async () => {
    const opening = Promise.withResolvers<void>();
    const { keeper, asked } = await start({ ready: opening.promise });
    await keeper.stop();
    opening.resolve();
    await keeper.taken;
    expect(asked).toEqual([]);
  });
});
