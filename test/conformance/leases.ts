import { describe, expect, onTestFinished, test } from 'vitest';
import { keepLease } from '../../src/background/keep-lease.ts';
import type { LeaseKeeper } from '../../src/background/keep-lease.ts';
import { sweepOrphans } from '../../src/background/monitor-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import type { Store } from '../../src/storage/store.ts';
import type { TimedDatabase } from '../support/timed-sqlite.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { holdsLease } from '../../src/storage/leases.ts';
import { idOf, joinStore, key, opened, settled, startMs } from './store.ts';

/** How long a lease lasts, in milliseconds: written out, because all that is promised to operators follows from it. */
const leaseMs = 15_000;
const hourMs = 3_600_000;

/** Two processes on one database, whose time the test moves. Each has taken its lease, and begun one request. */
interface Pair extends Pick<TimedDatabase, 'engine' | 'move'> {
  readonly first: Store;
  readonly second: Store;
  /** Lets time pass, in which one process renews its lease as often as it should. */
  readonly pass: (durationMs: number, renewing: Store) => Promise<void>;
  /** The open requests that a process closes because their owners have no lease. */
  readonly closable: (store: Store) => Promise<readonly string[]>;
  /** What the first process has reported. */
  readonly faults: string[];
}

/** What leases must do over every engine. */
export function describeLeases(name: string, open: () => Promise<TimedDatabase>): void {
  const setUp = async (): Promise<Pair> => {
    const { engine, move } = await open();
    onTestFinished(() => engine.close());
    const faults: string[] = [];
    const [first, second] = [joinStore(engine, faults), joinStore(engine)];
    await first.createKey(key, 'hash', 1_000);
    for (const store of [first, second]) expect(await store.renewLease()).toBe(false);
    await first.open(opened('of first', 300));
    await second.open(opened('of second', 100));
    return {
      engine,
      move,
      first,
      second,
      faults,
      async pass(durationMs, renewing) {
        for (let passedMs = 0; passedMs < durationMs; passedMs += 5_000) {
          await move(Math.min(5_000, durationMs - passedMs));
          await renewing.renewLease();
        }
      },
      // Its own ones only if they are older than the database itself.
      closable: async (store) => store.listClosable(0, Number.MAX_SAFE_INTEGER),
    };
  };

  describe(`${name}: leases`, () => {
    describeEnding(setUp);
    describeReturning(setUp);
    describeKeeping(setUp);
  });
}

function describeEnding(setUp: () => Promise<Pair>): void {
  test('are over 15 seconds after the last renewal, not earlier, and are ended by another process then', async () => {
    const { first, second, pass, closable } = await setUp();
    await pass(leaseMs - 1, second);
    expect(await second.endOverLeases()).toEqual([]);
    await pass(1, second);
    expect(await closable(second)).toEqual([]);
    expect(await second.endOverLeases()).toEqual([first.owner()]);
    expect(await second.endOverLeases()).toEqual([]);
    expect(await closable(second)).toEqual([idOf('of first')]);
    expect(await second.closeLostRecords()).toBe(1);
    expect((await second.accounts([key.id])).get(key.id)).toMatchObject({
      balanceNanos: 900,
      heldNanos: 100,
    });
  });

  test('hold for what asks for them, as the giving of slots, exactly as long as they are not over', async () => {
    const { engine, first, move } = await setUp();
    const holds = async (): Promise<boolean> => {
      const sql = `SELECT 1 AS held WHERE ${holdsLease('?')}`;
      return (await engine.read([{ sql, values: [first.owner()] }])).flat().length > 0;
    };
    expect(await holds()).toBe(true);
    await move(leaseMs - 1);
    expect(await holds()).toBe(true);
    await move(1);
    expect(await holds()).toBe(false);
    await first.renewLease();
    expect(await holds()).toBe(true);
    await first.endLease();
    expect(await holds()).toBe(false);
  });

  test('are not ended while they are renewed, however long that goes on', async () => {
    const { first, second, pass } = await setUp();
    for (let round = 0; round < 10; round++) {
      await pass(5_000, first);
      await second.renewLease();
      expect([await first.endOverLeases(), await second.endOverLeases()]).toEqual([[], []]);
    }
  });

  test('are not ended by a process that has none, whose own is over, or who has it for less than 15 seconds', async () => {
    const { engine, first, second, move, pass } = await setUp();
    await move(leaseMs);
    const [without, fresh] = [joinStore(engine), joinStore(engine)];
    await fresh.renewLease();
    const judges = [without, second, fresh];
    expect(await Promise.all(judges.map((judge) => judge.endOverLeases()))).toEqual([[], [], []]);
    await pass(leaseMs - 1, fresh);
    expect(await fresh.endOverLeases()).toEqual([]);
    await pass(1, fresh);
    expect((await fresh.endOverLeases()).toSorted()).toEqual([first.owner(), second.owner()].toSorted());
  });

  test('are not ended where their owner renews between the reading and the ending', async () => {
    const { engine, first, pass } = await setUp();
    let renewed = 0;
    const late = Object.assign(Object.create(engine) as Engine, {
      async lookUp(...asked: Parameters<Engine['lookUp']>) {
        const found = await engine.lookUp(...asked);
        expect(found).toEqual([[{ id: first.owner() }]]);
        renewed++;
        await first.renewLease();
        return found;
      },
    });
    const judge = joinStore(late);
    await judge.renewLease();
    // The lease of the second process is no matter here.
    await engine.run([
      { sql: 'DELETE FROM owners WHERE id NOT IN (?, ?)', values: [first.owner(), judge.owner()] },
    ]);
    await pass(leaseMs, judge);
    expect([await judge.endOverLeases(), renewed]).toEqual([[], 1]);
    expect(await first.renewLease()).toBe(false);
  });

  test('are ended at once by a process that ends its own, as at its stop', async () => {
    const { first, second, closable } = await setUp();
    await first.endLease();
    expect(await closable(second)).toEqual([idOf('of first')]);
    expect(await second.closeLostRecords()).toBe(1);
    expect(await second.renewLease()).toBe(false);
  });

  test('decide alone what others may close: not how old it is by the clock of the process that began it', async () => {
    const { engine, first, second } = await setUp();
    const hasty = joinStore(engine);
    await hasty.renewLease();
    await hasty.open({ ...opened(''), requestId: idOf('of tomorrow', startMs + 24 * hourMs) });
    const sweep = (sweeper: Store): Promise<number> => sweepOrphans(sweeper, () => false, startMs);
    expect([await sweep(first), await sweep(second)]).toEqual([0, 0]);
    await hasty.endLease();
    expect([await sweep(first), await sweep(second)]).toEqual([1, 0]);
  });

  test('do not protect the requests of a process from itself, nor expose young ones to it', async () => {
    const { first } = await setUp();
    const at = (nowMs: number): Promise<number> => sweepOrphans(first, () => false, nowMs);
    await first.endLease();
    expect(await at(startMs + 10_000)).toBe(0);
    expect(await at(startMs + 10_001)).toBe(1);
  });

  test('have an own request without a record of it closed although the clock of its process was set back since', async () => {
    const { first } = await setUp();
    const at = (nowMs: number): Promise<number> => sweepOrphans(first, () => false, nowMs);
    expect(await at(startMs - 10_000)).toBe(0);
    expect(await at(startMs - hourMs)).toBe(1);
  });

  test('close no listed request of an owner that has a lease when it is to be closed', async () => {
    const { engine, first, second } = await setUp();
    const lease = {
      sql: 'INSERT INTO owners (id, since, renewed_at) VALUES (?, 0, 0)',
      values: [first.owner()],
    };
    await first.endLease();
    const listed = await second.listClosable(0, Number.MAX_SAFE_INTEGER);
    expect(listed).toEqual([idOf('of first')]);
    await engine.run([lease]);
    expect(await second.closeAsLost(listed)).toBe(0);
    expect((await first.accounts([key.id])).get(key.id)).toMatchObject({ heldNanos: 400 });
  });
}

function describeReturning(setUp: () => Promise<Pair>): void {
  test('of a process that was paused is gone: it becomes another owner, and its settlements overtake the closing', async () => {
    const { first, second, pass, faults, closable } = await setUp();
    const before = first.owner();
    await pass(leaseMs, second);
    expect(await second.endOverLeases()).toEqual([before]);
    expect(await second.closeLostRecords()).toBe(1);
    // It goes on for a moment before it notices.
    await first.open(opened('of a moment'));
    expect(await first.renewLease()).toBe(true);
    expect(first.owner()).not.toBe(before);
    expect(await first.renewLease()).toBe(false);
    await first.open(opened('of its new owner', 10));
    expect(await closable(second)).toEqual([idOf('of a moment')]);
    expect(await second.closeLostRecords()).toBe(1);
    for (const id of ['of first', 'of a moment', 'of its new owner']) await first.settle(settled(id, 40));
    expect((await first.accounts([key.id])).get(key.id)).toMatchObject({
      balanceNanos: 780,
      heldNanos: 100,
      spentNanos: 120,
    });
    expect(faults).toEqual(Array(2).fill('a record that was closed as lost was settled late'));
  });

  test('are kept by every process after an outage of the database, whichever is back first', async () => {
    const { first, second, move, pass } = await setUp();
    const before = first.owner();
    await move(hourMs);
    expect(await second.renewLease()).toBe(false);
    expect(await second.endOverLeases()).toEqual([]);
    await pass(leaseMs - 1, second);
    expect(await second.endOverLeases()).toEqual([]);
    expect(await first.renewLease()).toBe(false);
    await pass(leaseMs - 1, second);
    expect(await second.endOverLeases()).toEqual([]);
    expect(first.owner()).toBe(before);
    expect(await first.closeLostRecords()).toBe(0);
  });

  test('are renewed and ended as before once the clock of the database was set back', async () => {
    const { first, second, move, pass } = await setUp();
    await pass(leaseMs, first);
    await move(-hourMs);
    expect([await first.renewLease(), await first.endOverLeases()]).toEqual([false, []]);
    await pass(leaseMs - 1, first);
    expect(await first.endOverLeases()).toEqual([]);
    await pass(1, first);
    expect(await first.endOverLeases()).toEqual([second.owner()]);
  });

  test('may have been taken although the answer was lost: it is the same lease', async () => {
    const { engine } = await setUp();
    let isLost = true;
    const store = joinStore(
      Object.assign(Object.create(engine) as Engine, {
        async call(...unit: Parameters<Engine['call']>) {
          const row = await engine.call(...unit);
          if (isLost) throw new Error('the connection was lost');
          return row;
        },
      }),
    );
    const before = store.owner();
    await expect(store.renewLease()).rejects.toThrow('lost');
    isLost = false;
    expect(await store.renewLease()).toBe(false);
    expect(store.owner()).toBe(before);
    const rows = await engine.read([{ sql: 'SELECT id FROM owners', values: [] }]);
    expect(rows.flat()).toHaveLength(3);
  });
}

function describeKeeping(setUp: () => Promise<Pair>): void {
  test('have what a process held given back within a second after its lease was over', async () => {
    const { first, second, move } = await setUp();
    const clock = createFakeClock();
    const reported: string[] = [];
    let closed = 0;
    let passedMs = 0;
    const keepers: LeaseKeeper[] = [first, second].map((store) =>
      keepLease(store === first ? halting(store, () => passedMs > 60_000) : store, {
        clock,
        ready: Promise.resolve(),
        onEnded: async () => void (closed += await store.closeLostRecords()),
        onFault: (message) => void reported.push(message.replace(/ \(and .*/, '')),
      }),
    );
    await Promise.all(keepers.map(({ taken }) => taken));
    const passUntil = async (untilMs: number, isOver: () => boolean): Promise<void> => {
      while (passedMs < untilMs && !isOver()) {
        await eventually('all keepers pause', () => clock.scheduled === keepers.length * 2);
        await move(250);
        passedMs += 250;
        clock.advance(250);
      }
    };
    await passUntil(60_000, () => reported.length > 0);
    expect([reported, closed, passedMs]).toEqual([[], 0, 60_000]);
    await passUntil(90_000, () => closed > 0);
    expect(closed).toBe(1);
    // Its last renewal was at 55 to 60 seconds.
    expect(passedMs).toBeGreaterThan(60_000 + leaseMs - 5_500);
    expect(passedMs).toBeLessThanOrEqual(60_000 + leaseMs + 1_000);
    expect(keepers.map(({ holds }) => holds)).toEqual([false, true]);
    expect(reported).toEqual([
      'leases could not be renewed or ended',
      'leases could not be renewed or ended',
      'the lease of a process was over and is ended',
    ]);
    await Promise.all(keepers.map((keeper) => keeper.stop()));
  });

  /** A store whose database is away from a time on. */
  function halting(store: Store, isAway: () => boolean): Store {
    const unless = async <Done>(work: () => Promise<Done>): Promise<Done> => {
      if (isAway()) throw new Error('the database is away');
      return work();
    };
    return {
      ...store,
      renewLease: () => unless(() => store.renewLease()),
      endOverLeases: () => unless(() => store.endOverLeases()),
      endLease: () => unless(() => store.endLease()),
    };
  }
}
