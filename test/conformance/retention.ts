import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Retention } from '../../src/domain/ports/retention.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine, Row } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { say } from './engine.ts';
import { idOf, key, opened, settled, startMs } from './store.ts';

export const dayMs = 86_400_000;

interface Bench {
  readonly engine: Engine;
  readonly store: Store;
  readonly retention: Retention;
  /** Begins and ends a request that was begun on some day. */
  readonly use: (requestId: string, day: number, chargeNanos: number) => Promise<void>;
  /** What the verification of the ledger finds. */
  readonly faults: () => Promise<readonly string[]>;
  readonly ledger: () => Promise<readonly Row[]>;
}

/** Removes everything from before a time that is as it is read, and folds what can be folded. */
async function removeAll(retention: Retention, beforeMs: number): Promise<number> {
  const records = await retention.listOldest(beforeMs, null, 500);
  const read = records.map(({ requestId, outcome }) => ({ requestId, isLost: outcome === 'lost' }));
  const removed = await retention.removeRecords(read, beforeMs);
  await retention.foldLedgers(setImmediate);
  return removed;
}

/** What the end of old records must do over every engine. */
export function describeRetention(name: string, open: () => Promise<Engine>): void {
  /** A key with 1,000 nano-USD and a credit of 50, both booked on day 0. */
  const setUp = async (): Promise<Bench> => {
    const engine = await open();
    onTestFinished(() => engine.close());
    let nowMs = startMs;
    const store = createStore(engine, { nextId: () => randomUUID(), now: () => nowMs, report: () => {} });
    await store.createKey(key, 'hash', 1_000);
    await store.credit({ keyId: key.id, nanos: 50, reference: 'paid' });
    return {
      engine,
      store,
      retention: createRetention(engine),
      async use(requestId, day, chargeNanos) {
        nowMs = startMs + day * dayMs;
        const begun = { ...opened('', 100), requestId: idOf(requestId, nowMs) };
        await store.open(begun);
        await store.settle({
          ...settled('', chargeNanos),
          requestId: begun.requestId,
          begun: beginningOf(begun),
        });
      },
      faults: async () => (await verifyLedger(createLedgerAudit(engine))).faults,
      async ledger() {
        const [rows = []] = await engine.read([say('SELECT number, delta FROM ledger ORDER BY number')]);
        return rows;
      },
    };
  };

  describe(`${name}: the end of old records`, () => {
    test('removes records and folds their postings: balances, later postings and the audit stay exact', async () => {
      const { store, retention, use, faults, ledger } = await setUp();
      for (let day = 0; day < 4; day++) await use(`${day}`, day, 10 + day);
      const before = await store.accounts([key.id]);
      expect(await removeAll(retention, startMs + 2 * dayMs)).toBe(2);
      expect(await ledger()).toEqual([
        { number: 5, delta: -12 },
        { number: 6, delta: -13 },
      ]);
      expect(await store.accounts([key.id])).toEqual(before);
      expect(await faults()).toEqual([]);
      await use('9', 9, 5);
      expect((await ledger()).at(-1)).toEqual({ number: 7, delta: -5 });
      expect(await removeAll(retention, startMs + 10 * dayMs)).toBe(3);
      expect(await ledger()).toEqual([]);
      await use('10', 10, 1);
      expect(await ledger()).toEqual([{ number: 8, delta: -1 }]);
      expect(await faults()).toEqual([]);
      expect((await store.accounts([key.id])).get(key.id)).toEqual({
        balanceNanos: 1_050 - 10 - 11 - 12 - 13 - 5 - 1,
        heldNanos: 0,
        spentNanos: 52,
      });
      expect(await retention.removedBefore()).toBe(startMs + 10 * dayMs);
      expect(await retention.oldestRecord()).toBe(startMs + 10 * dayMs);
    });

    test('still refuses the reference of a credit that is folded', async () => {
      const { store, retention, use, ledger } = await setUp();
      await use('0', 0, 10);
      await removeAll(retention, startMs + dayMs);
      expect(await ledger()).toEqual([]);
      const credit = { keyId: key.id, nanos: 50, reference: 'paid' };
      expect((await store.credit(credit)).result).toBe('booked before');
      expect((await store.credit({ ...credit, nanos: 51 })).result).toBe('other amount');
      expect((await store.credit({ ...credit, reference: 'paid again' })).result).toBe('booked');
      expect((await store.accounts([key.id])).get(key.id)?.balanceNanos).toBe(1_090);
    });

    test('charges nothing for a settlement that is offered again after its record is removed', async () => {
      const { store, retention, use, faults } = await setUp();
      await use('0', 0, 10);
      await use('1', 1, 10);
      const again = settled('0', 10);
      const offer = (): Promise<number> => store.settle(again);
      const records = await retention.listOldest(startMs + dayMs, null, 10);
      await retention.removeRecords([{ requestId: idOf('0'), isLost: false }], startMs + dayMs);
      expect(records).toHaveLength(1);
      await expect(offer()).rejects.toThrow(`no open record of ${idOf('0')}`);
      await retention.foldLedgers(setImmediate);
      await expect(offer()).rejects.toThrow(`no open record of ${idOf('0')}`);
      expect((await store.accounts([key.id])).get(key.id)?.spentNanos).toBe(20);
      expect(await faults()).toEqual([]);
    });

    test('keeps a record that was closed as lost, and settled after it was read', async () => {
      const { store, retention, faults } = await setUp();
      await store.open(opened('late', 100));
      await store.closeAsLost([idOf('late')]);
      const read = await retention.listOldest(startMs + dayMs, null, 10);
      expect(read.map(({ outcome }) => outcome)).toEqual(['lost']);
      await store.settle(settled('late', 7));
      expect(
        await retention.removeRecords([{ requestId: idOf('late'), isLost: true }], startMs + dayMs),
      ).toBe(0);
      expect(await store.findRecord(idOf('late'), null)).toMatchObject({ chargeNanos: 7 });
      expect(await retention.foldLedgers(setImmediate)).toBe(2);
      expect(await faults()).toEqual([]);
    });

    test('removes nothing twice, no open request, and nothing that is younger than it was told', async () => {
      const { store, retention, use } = await setUp();
      await use('0', 0, 1);
      await use('5', 5, 1);
      await store.open(opened('open', 10));
      const others = ['', 'req_zz', idOf('0').toUpperCase(), `${idOf('0')}0`];
      const strange = [false, true].flatMap((isLost) => others.map((requestId) => ({ requestId, isLost })));
      expect(await retention.removeRecords(strange, startMs + dayMs)).toBe(0);
      const all = [idOf('0'), idOf('5', startMs + 5 * dayMs), idOf('open')].map((requestId) => ({
        requestId,
        isLost: false,
      }));
      const page = async () => (await store.listRecords({}, 9, idOf('0')))?.records;
      expect(await retention.removeRecords(all, startMs + dayMs)).toBe(1);
      expect(await retention.removeRecords(all, startMs + dayMs)).toBe(0);
      // A list that has come to a record which is removed meanwhile goes on behind it.
      expect([await page(), await store.listRecords({}, 9, idOf('never', startMs + dayMs))]).toEqual([
        [],
        null,
      ]);
      // An earlier time does not undo what a later one has set.
      await retention.removeRecords(all, startMs);
      expect(await retention.removedBefore()).toBe(startMs + dayMs);
      expect(await store.countOpen()).toBe(1);
      await store.settle({ ...settled('open', 3), begun: beginningOf(opened('open', 10)) });
      expect(await store.findRecord(idOf('open'), null)).toMatchObject({ chargeNanos: 3 });
    });

    test('folds no ledger that lacks a posting, and deletes none that no fold stands for', async () => {
      const { engine, retention, use, faults, ledger } = await setUp();
      for (let number = 0; number < 4; number++) await use(`${number}`, 0, 1);
      await expect(engine.run([say('UPDATE record_rows SET charge = 0')])).rejects.toThrow(/never changed/);
      await expect(engine.run([say('DELETE FROM record_rows')])).rejects.toThrow(/append-only/);
      const read = await retention.listOldest(startMs + dayMs, null, 10);
      expect(
        await retention.removeRecords(
          read.map(({ requestId }) => ({ requestId, isLost: false })),
          startMs + dayMs,
        ),
      ).toBe(4);
      await expect(engine.run([say('DELETE FROM ledger_rows WHERE number = 3')])).rejects.toThrow(
        /append-only/,
      );
      await expect(engine.run([say('UPDATE ledger_rows SET delta = 0')])).rejects.toThrow(/append-only/);
      // A fold that someone wrote by hand lets one posting go that it does not sum up.
      const forged = `INSERT INTO ledger_folds (key_id, number, credits, charges) VALUES ('${key.id}', 3, 0, 0)`;
      await expect(engine.run([say(forged)])).rejects.toThrow(/not sealed/);
      await engine.run([
        say(`INSERT INTO ledger_seals (key_id, number, hash, balance) VALUES ('${key.id}', 3, 'x', 0)`),
        say(forged),
        say('DELETE FROM ledger_rows WHERE number = 3'),
        say('DELETE FROM ledger_folds'),
      ]);
      const damage = await faults();
      expect(damage).not.toEqual([]);
      await retention.foldLedgers(setImmediate);
      expect((await ledger()).map(({ number }) => number)).toEqual([4, 5, 6]);
      expect((await faults()).length).toBeGreaterThan(0);
    });

    test('is never mistaken for a fault by an audit that runs meanwhile', async () => {
      const { retention, use, faults } = await setUp();
      const over = new AbortController();
      const audits = (async () => {
        const found: string[] = [];
        while (!over.signal.aborted) found.push(...(await faults()));
        return found;
      })();
      for (let day = 1; day < 6; day++) {
        await Promise.all([1, 2].map((number) => use(`${day}_${number}`, day, number)));
        await removeAll(retention, startMs + day * dayMs);
      }
      over.abort();
      expect(await audits).toEqual([]);
      expect(await faults()).toEqual([]);
    });
  });
}
