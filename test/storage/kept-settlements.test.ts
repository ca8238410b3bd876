import { describe, expect, test } from 'vitest';
import type { SettledRecord } from '../../src/domain/consumption.ts';
import type { Records } from '../../src/domain/ports.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { keepSettlements } from '../../src/storage/kept-settlements.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** Records of which only settlements matter, and which fail while `fault` is set. */
function startRecords() {
  const settled: string[] = [];
  const state: { fault: Error | null } = { fault: null };
  const records: Records = {
    open: async () => ({ granted: true, holdNanos: null, balanceNanos: null }),
    async settle({ requestId }) {
      if (state.fault !== null) throw state.fault;
      settled.push(requestId);
    },
  };
  return { records, settled, state };
}

const record = (requestId: string): SettledRecord => ({
  requestId,
  outcome: 'completed',
  upstream: null,
  attempts: [],
  status: 200,
  usage: null,
  usageSource: 'none',
  chargeNanos: 1,
  firstByteMs: null,
  totalMs: 1,
});

describe('settlements that the database does not take', () => {
  test('are kept in order, and made once it takes them again', async () => {
    const { records, settled, state } = startRecords();
    const clock = createFakeClock();
    const faults: string[] = [];
    const kept = keepSettlements(records, clock, (message) => void faults.push(message));
    state.fault = new StorageError('database or disk is full');
    await kept.settle(record('a'));
    await kept.settle(record('b'));
    expect([kept.waiting, settled]).toEqual([2, []]);
    clock.advance(1_000);
    await eventually('they were offered in vain', () => kept.waiting === 2 && clock.scheduled === 1);
    state.fault = null;
    clock.advance(1_000);
    await eventually('they are made', () => settled.length === 2);
    expect(settled).toEqual(['a', 'b']);
    expect(kept.waiting).toBe(0);
    expect(clock.scheduled).toBe(0);
    expect(faults[0]).toContain('kept');
  });

  test('are known to wait while they are being offered: nobody may take their records for lost', async () => {
    const { records, state } = startRecords();
    const offered = Promise.withResolvers<void>();
    const slow: Records = {
      ...records,
      async settle(settled) {
        if (state.fault !== null) throw state.fault;
        await offered.promise;
        await records.settle(settled);
      },
    };
    const clock = createFakeClock();
    const kept = keepSettlements(slow, clock, () => {});
    state.fault = new StorageError('database is locked');
    await kept.settle(record('a'));
    state.fault = null;
    const flushed = kept.flush();
    clock.advance(700);
    expect([kept.isWaiting('a'), kept.waiting, kept.lagMs()]).toEqual([true, 1, 700]);
    offered.resolve();
    expect(await flushed).toBe(0);
    expect([kept.isWaiting('a'), kept.waiting, kept.lagMs()]).toEqual([false, 0, 0]);
  });

  test('are offered a last time when the process ends, which is told how many are lost', async () => {
    const { records, settled, state } = startRecords();
    const kept = keepSettlements(records, createFakeClock(), () => {});
    state.fault = new StorageError('database is locked');
    await kept.settle(record('a'));
    expect(await kept.flush()).toBe(1);
    state.fault = null;
    expect(await kept.flush()).toBe(0);
    expect(settled).toEqual(['a']);
  });

  test('are not kept when the fault is another one: a second settlement stays an error', async () => {
    const { records, state } = startRecords();
    const kept = keepSettlements(records, createFakeClock(), () => {});
    state.fault = new Error('no open record of a');
    await expect(kept.settle(record('a'))).rejects.toThrow('no open record');
    expect(kept.waiting).toBe(0);
  });
});
