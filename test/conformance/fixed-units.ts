import { expect, onTestFinished, test } from 'vitest';
import type { Engine, FixedUnit } from '../../src/storage/engine.ts';
import { fixedUnits, checkWrites } from '../../src/storage/fixed-units.ts';
import { createStore } from '../../src/storage/store.ts';
import { fixedUnitCalls, locksOf, runOneByOne } from '../support/fixed-units.ts';
import { payingKey } from '../support/stored-rows.ts';
import { say } from './engine.ts';

/** A balance that has room for the hold and the charge, in nano-USD. */
const balanceNanos = 1_000;

const units = fixedUnitCalls.map(([name, values]) => ({ unit: fixedUnits[name] as FixedUnit, values }));

/** Everything that the fixed units change, but for the times of leases: each database has its own clock. */
const readAll = [
  ...[
    'accounts',
    'budgets',
    'record_kinds',
    'open_rows',
    'record_rows',
    'claim_rows',
    'ledger_rows',
    'migrations',
  ].map((table) => say(`SELECT * FROM ${table}`)),
  say('SELECT id FROM owners'),
  say('SELECT key_id, length_ms, tokens FROM token_use'),
];

/** What every engine must make of the fixed units, however it keeps them. */
export function describeFixedUnits(name: string, open: () => Promise<Engine>): void {
  test(`${name}: every fixed unit is called here`, () => {
    expect(new Set(units.map(({ unit }) => unit))).toEqual(new Set(Object.values(fixedUnits)));
  });

  test(`${name}: a fixed unit does what its statements do one by one`, async () => {
    const engines = [await open(), await open()] as const;
    for (const engine of engines) {
      onTestFinished(() => engine.close());
      const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
      await store.createKey(payingKey, 'hash', balanceNanos);
    }
    const [called, plain] = engines;
    for (const { unit, values } of units) {
      const row = await called.call(unit, values);
      expect(row).not.toBeNull();
      const before = await plain.read(readAll);
      await plain.run(locksOf(unit, values));
      expect(await plain.read(readAll)).toEqual(before);
      // Behind its columns an engine may have further ones.
      expect(await runOneByOne(plain, unit, values)).toEqual(row?.slice(0, unit.columns.length));
      expect(await plain.read(readAll)).toEqual(await called.read(readAll));
      const hasChanged = JSON.stringify(await plain.read(readAll)) !== JSON.stringify(before);
      expect([unit.name, hasChanged]).toEqual([unit.name, unit !== checkWrites]);
    }
  });
}
