import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Unit, UnitsRequest } from '../../src/storage/sqlite/thread-messages.ts';
import { WaitingUnits } from '../../src/storage/sqlite/waiting-units.ts';

const unit: Unit = { kind: 'fixed', name: 'open_record', values: ['a', 1, null] };

let nowMs = 7;
const now = (): number => nowMs;

function start(most = 3) {
  const posted: UnitsRequest[] = [];
  return { posted, units: new WaitingUnits(most, (request) => void posted.push(request), now) };
}

describe('units that wait for a thread', () => {
  test('are posted in one message at the end of the turn, with the time, and settled by their numbers', async () => {
    const { units, posted } = start();
    const [first, second] = [units.handIn(unit), units.handIn(unit)];
    expect(posted).toEqual([]);
    await setImmediate();
    const third = units.handIn(unit);
    nowMs = 9;
    units.flush();
    await setImmediate();
    expect(posted).toEqual([
      { kind: 'units', first: 1, nowMs: 7, units: [unit, unit] },
      { kind: 'units', first: 3, nowMs: 9, units: [unit] },
    ]);
    units.settle(1, [{ kind: 'done', done: [1] }]);
    units.settle(2, [
      { kind: 'failed', error: 'database or disk is full', code: 13 },
      { kind: 'done', done: null },
    ]);
    expect(await Promise.allSettled([first, second, third])).toMatchObject([
      { value: [1] },
      { reason: { reason: 'full' } },
      { value: null },
    ]);
  });

  test('are refused beyond the most that may wait, until others are settled', async () => {
    const { units } = start(1);
    const first = units.handIn(unit);
    await expect(units.handIn(unit)).rejects.toThrow('too many');
    units.settle(1, [{ kind: 'done', done: null }]);
    await first;
    const next = units.handIn(unit);
    units.settle(2, [{ kind: 'done', done: [2] }]);
    expect(await next).toEqual([2]);
  });

  test('are rejected, those of one turn, when their message can not be posted; those before and after it are not', async () => {
    const posted: UnitsRequest[] = [];
    let fault: Error | null = null;
    const post = (request: UnitsRequest): void => {
      if (fault !== null) throw fault;
      posted.push(request);
    };
    const units = new WaitingUnits(5, post, now);
    const before = units.handIn(unit);
    await setImmediate();
    fault = new DOMException('it could not be cloned', 'DataCloneError');
    const failed = Promise.allSettled([units.handIn(unit), units.handIn(unit)]);
    const reason = expect.objectContaining({ name: 'StorageError', isPermanent: false }) as StorageError;
    expect(await failed).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    fault = null;
    const after = units.handIn(unit);
    await setImmediate();
    expect(posted.map(({ first }) => first)).toEqual([1, 2]);
    units.settle(1, [{ kind: 'done', done: [1] }]);
    units.settle(2, [{ kind: 'done', done: [2] }]);
    expect(await Promise.all([before, after])).toEqual([[1], [2]]);
  });

  test('are not settled by results that came before those of older units', async () => {
    const { units } = start();
    const both = [units.handIn(unit), units.handIn(unit)];
    expect(units.settle(2, [{ kind: 'done', done: [2] }])).toBe(false);
    expect(units.settle(1, [{ kind: 'done', done: [1] }])).toBe(true);
    expect(units.settle(2, [{ kind: 'done', done: [2] }])).toBe(true);
    expect(await Promise.all(both)).toEqual([[1], [2]]);
  });

  test('are rejected when the thread ends, posted or not, as are all that come later', async () => {
    const { units, posted } = start();
    const first = units.handIn(unit);
    await setImmediate();
    const second = units.handIn(unit);
    units.end(new StorageError('the database thread ended'));
    const results = await Promise.allSettled([first, second, units.handIn(unit)]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await setImmediate();
    expect(posted).toHaveLength(1);
  });
});
