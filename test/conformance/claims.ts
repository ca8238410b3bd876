import { describe, expect, onTestFinished, test } from 'vitest';
import { sweepOrphans } from '../../src/background/monitor-ledger.ts';
import { ClaimLostError } from '../../src/domain/ports/claims.ts';
import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import type { Engine } from '../../src/storage/engine.ts';
import type { Store } from '../../src/storage/store.ts';
import type { TimedDatabase } from '../support/timed-sqlite.ts';
import { idOf, joinStore, key, opened, settled, startMs } from './store.ts';

const leaseMs = 15_000;
const claim = { keyId: key.id, name: 'c1'.repeat(32), request: 'a5'.repeat(32) };

/** Two processes on one database, each with its lease. The first one's is over once time has passed. */
interface Pair {
  readonly engine: Engine;
  readonly first: Store;
  readonly second: Store;
  /** Ends the lease of the first process, as it has stood still. */
  readonly endFirst: () => Promise<void>;
}

/** How a request under the claim ends. */
function ended(name: string, chargeNanos = 5, isFreed = false): SettledRecord {
  return { ...settled(name, chargeNanos), claim: { name: claim.name, isFreed } };
}

/** What claims must be over every engine. */
export function describeClaimRows(name: string, open: () => Promise<TimedDatabase>): void {
  const setUp = async (): Promise<Pair> => {
    const { engine, move } = await open();
    onTestFinished(() => engine.close());
    const [first, second] = [joinStore(engine), joinStore(engine)];
    await first.createKey(key, 'hash', 1_000);
    for (const store of [first, second]) await store.renewLease();
    return {
      engine,
      first,
      second,
      async endFirst() {
        for (let passedMs = 0; passedMs < leaseMs; passedMs += 5_000) {
          await move(5_000);
          await second.renewLease();
        }
        expect(await second.endOverLeases()).toEqual([first.owner()]);
      },
    };
  };
  const stateOf = async (store: Store): Promise<string | undefined> => (await store.findClaim(claim))?.state;
  const spent = async (store: Store): Promise<number | undefined> =>
    (await store.accounts([key.id])).get(key.id)?.spentNanos;

  describe(`${name}: claims`, () => {
    test('are given to one request, also when it asks again, until that is settled', async () => {
      const { first, second } = await setUp();
      expect(await first.findClaim(claim)).toBe(null);
      expect(await first.beginClaim(claim, idOf('a'))).toBe(true);
      expect(await first.beginClaim(claim, idOf('a'))).toBe(true);
      expect(await first.beginClaim(claim, idOf('b'))).toBe(false);
      expect(await second.beginClaim(claim, idOf('b'))).toBe(false);
      expect(await first.findClaim(claim)).toEqual({
        request: claim.request,
        requestId: idOf('a'),
        owner: first.owner(),
        state: 'own',
      });
      expect(await second.findClaim(claim)).toMatchObject({ state: 'running', owner: first.owner() });
      await first.open(opened('a', 10));
      await first.settle(ended('a'));
      expect([await stateOf(first), await stateOf(second)]).toEqual(['ended', 'ended']);
      expect(await second.beginClaim(claim, idOf('b'))).toBe(false);
      expect(await spent(first)).toBe(5);
    });

    test('of other keys and of other names are others', async () => {
      const { first } = await setUp();
      await first.createKey({ ...key, id: 'key_b' }, 'other hash', null);
      expect(await first.beginClaim(claim, idOf('a'))).toBe(true);
      expect(await first.beginClaim({ ...claim, keyId: 'key_b' }, idOf('b'))).toBe(true);
      expect(await first.beginClaim({ ...claim, name: 'd2'.repeat(32) }, idOf('c'))).toBe(true);
    });

    test('are free again behind a settlement that says so, and begin anew', async () => {
      const { first, second } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await first.open(opened('a'));
      await first.settle(ended('a', 0, true));
      expect(await first.findClaim(claim)).toBe(null);
      expect(await second.beginClaim(claim, idOf('b'))).toBe(true);
    });

    test('are freed by their own process alone, and for the request that has them', async () => {
      const { first, second } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await second.freeClaim(claim, idOf('a'));
      await first.freeClaim(claim, idOf('b'));
      expect(await stateOf(first)).toBe('own');
      await first.freeClaim(claim, idOf('a'));
      expect(await first.findClaim(claim)).toBe(null);
      // What has ended is not freed.
      await first.beginClaim(claim, idOf('c'));
      await first.open(opened('c'));
      await first.settle(ended('c'));
      await first.freeClaim(claim, idOf('c'));
      expect(await stateOf(first)).toBe('ended');
    });

    test('of a process without a lease are given to another one, and the first one is not charged any more', async () => {
      const { first, second, endFirst } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await first.open(opened('a', 10));
      await endFirst();
      expect(await stateOf(second)).toBe('free');
      expect(await second.beginClaim(claim, idOf('b'))).toBe(true);
      await second.open(opened('b', 10));
      await expect(first.settle(ended('a'))).rejects.toThrow(ClaimLostError);
      await second.closeLostRecords();
      await expect(first.settle(ended('a'))).rejects.toThrow(ClaimLostError);
      await second.settle(ended('b', 7));
      expect(await spent(second)).toBe(7);
      expect((await second.accounts([key.id])).get(key.id)).toMatchObject({
        heldNanos: 0,
        balanceNanos: 993,
      });
    });

    test('are free once the requests of a process without a lease are closed', async () => {
      const { first, second, endFirst } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await endFirst();
      // Its record was not begun.
      expect(await second.closeLostRecords()).toBe(0);
      expect(await second.findClaim(claim)).toBe(null);
      await expect(first.settle(ended('a'))).rejects.toThrow(ClaimLostError);
    });

    test('keep their owner when they end, and neither the end of its lease nor a sweep frees them', async () => {
      const { first, second, endFirst } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await first.open(opened('a', 10));
      await first.settle(ended('a'));
      const stored = { request: claim.request, requestId: idOf('a'), owner: first.owner(), state: 'ended' };
      expect(await first.findClaim(claim)).toEqual(stored);
      await sweepOrphans(first, () => false, startMs + 60_000);
      await endFirst();
      expect(await second.listClosable(0, 0)).toEqual([]);
      await second.closeAsLost([idOf('a')]);
      await second.closeLostRecords();
      expect(await second.findClaim(claim)).toEqual(stored);
      expect(await second.beginClaim(claim, idOf('b'))).toBe(false);
      expect(await spent(second)).toBe(5);
    });

    test('that ended under an earlier version have no owner that is known', async () => {
      const { engine, first } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await first.open(opened('a'));
      await first.settle(ended('a'));
      await engine.run([{ sql: 'UPDATE claim_rows SET owner = NULL', values: [] }]);
      expect(await first.findClaim(claim)).toMatchObject({ state: 'ended', owner: null });
    });

    test('are not begun without a lease, which nothing would free', async () => {
      const { first, endFirst } = await setUp();
      await endFirst();
      expect(await first.beginClaim(claim, idOf('a'))).toBe(false);
      expect(await first.findClaim(claim)).toBe(null);
    });

    test('of a process are freed by its sweep, if they have no request', async () => {
      const { first } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      const laterMs = startMs + 60_000;
      await sweepOrphans(first, (requestId) => requestId === idOf('a'), laterMs);
      expect(await stateOf(first)).toBe('own');
      await sweepOrphans(first, () => false, startMs + 1);
      expect(await stateOf(first)).toBe('own');
      await sweepOrphans(first, () => false, laterMs);
      expect(await first.findClaim(claim)).toBe(null);
    });

    test('have their request charged once, however often it is settled', async () => {
      const { first } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      await first.open(opened('a', 10));
      await first.settle(ended('a'));
      await expect(first.settle(ended('a'))).rejects.toThrow(ClaimLostError);
      expect(await first.isSettled(ended('a'))).toBe(true);
      expect(await spent(first)).toBe(5);
      expect(await stateOf(first)).toBe('ended');
    });

    test('are removed when they ended before a time, and not while they run', async () => {
      const { first } = await setUp();
      await first.beginClaim(claim, idOf('a'));
      expect(await first.removeClaims(Number.MAX_SAFE_INTEGER)).toBe(0);
      await first.open(opened('a'));
      await first.settle(ended('a'));
      expect(await first.removeClaims(startMs)).toBe(0);
      expect(await first.removeClaims(startMs + 1)).toBe(1);
      expect(await first.findClaim(claim)).toBe(null);
    });
  });
}
