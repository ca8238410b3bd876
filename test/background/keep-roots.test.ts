import { describe, expect, onTestFinished, test } from 'vitest';
import { keepRoots } from '../../src/background/keep-roots.ts';
import type { SharedDuty } from '../../src/domain/ports/shared-changes.ts';
import type { LedgerRoot } from '../../src/domain/statements/root.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { statementsOver } from '../support/statement-tools.ts';
import { payingKey } from '../support/stored-rows.ts';
import { createAuditChain } from '../../src/storage/audit/audit-chain.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { storeOver } from '../support/used-database.ts';

const minuteMs = 60_000;

async function keep(duty: SharedDuty | null = null) {
  const engine = openTestEngine(':memory:');
  const clock = createFakeClock();
  const store = storeOver(engine);
  await store.createKey(payingKey, 'hash', 5_000);
  const { chain, roots } = statementsOver(engine, () => clock.now());
  const [made, faults]: [LedgerRoot[], string[]] = [[], []];
  const kept = keepRoots({
    chain,
    roots,
    audit: createAuditChain(engine, () => 7),
    ready: Promise.resolve(),
    clock,
    duty,
    onRoot: (root) => void made.push(root),
    onFault: (message) => void faults.push(message),
  });
  await Promise.resolve();
  onTestFinished(async () => {
    await kept.stop();
    await engine.close();
  });
  /** Lets time pass a minute at a time, until something is so. */
  const pass = async (minutes: number): Promise<void> => {
    for (let minute = 0; minute < minutes; minute++) {
      clock.advance(minuteMs);
      // The reads of a look are of another thread.
      await roots.lastRoot();
      await roots.lastRoot();
    }
  };
  return { engine, clock, made, faults, kept, pass, store };
}

describe('the roots of the ledger', () => {
  test('are made once in every hour, and shown with their age', async () => {
    const { made, kept, pass, faults, clock } = await keep();
    expect(kept.figures()).toBeNull();
    await pass(1);
    await eventually('a root is made', () => made.length === 1);
    await pass(59);
    await eventually('the next root is made', () => made.length >= 2);
    await pass(30);
    expect(made.map(({ number }) => number)).toEqual([1, 2]);
    expect(made[1]?.previous).toBe(made[0]?.hash);
    const madeAtMs = made[1]?.madeAtMs ?? 0;
    expect(kept.figures()).toEqual({ number: 2, madeAtMs, ageMs: clock.now() - madeAtMs });
    expect(faults).toEqual([]);
  });

  test('are made by the process whose duty it is, and shown by no other', async () => {
    let isOurs = false;
    const { made, kept, pass } = await keep({ isOurs: async () => isOurs });
    await pass(120);
    expect(made).toEqual([]);
    isOurs = true;
    await pass(2);
    await eventually('a root is made', () => made.length === 1);
    isOurs = false;
    await pass(2);
    await eventually('it is shown elsewhere', () => kept.figures() === null);
  });

  test('are made again after one from a clock that was a year ahead', async () => {
    const { engine, made, pass, clock } = await keep();
    const ahead = statementsOver(engine, () => clock.now() + 365 * 24 * 60 * minuteMs);
    expect((await ahead.makeRoot())?.number).toBe(1);
    await pass(1);
    await eventually('the next root is made', () => made.length === 1);
    await pass(5);
    expect(made.map(({ number }) => number)).toEqual([2]);
  });

  test('are tried again after a fault, and a ledger that lacks a row holds up no other', async () => {
    let isBroken = true;
    const { engine, made, faults, pass, store } = await keep({
      async isOurs() {
        if (isBroken) throw new Error('the database is away');
        return true;
      },
    });
    await pass(1);
    await eventually('the fault is reported', () => faults.length === 1);
    expect(faults).toEqual(['no ledger root could be made: it is tried again in a minute']);
    await store.createKey({ ...payingKey, id: 'key_damaged', name: 'damaged' }, 'other hash', 7);
    await engine.run([{ sql: `UPDATE accounts SET postings = 2 WHERE key_id = 'key_damaged'`, values: [] }]);
    isBroken = false;
    await pass(1);
    await eventually('a root is made', () => made.length === 1);
    expect(made[0]?.accounts).toBe(1);
    expect(faults.slice(1)).toEqual(['a ledger could not be sealed']);
  });
});
