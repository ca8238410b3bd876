import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { compareStatements } from '../../src/domain/statements/check-statement.ts';
import { readStatement } from '../../src/domain/statements/read-statement.ts';
import { hashOfRoot } from '../../src/domain/statements/root.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import { statementsOver } from '../support/statement-tools.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { say } from './engine.ts';
import { dayMs } from './retention.ts';
import { idOf, key, opened, settled, startMs } from './store.ts';

/** What may be changed by hand behind the statements. */
export const handChanges = [
  ['an amount', 'record_rows', 'UPDATE record_rows SET charge = charge + 1 WHERE charge_number = 2'],
  [
    'a request',
    'record_rows',
    `UPDATE record_rows SET created_at = created_at + 1, settled_ms = settled_ms - 1 WHERE charge_number = 2`,
  ],
  ['a seal', 'ledger_seals', `UPDATE ledger_seals SET hash = 'x' WHERE number = 1000`],
  ['a root', 'ledger_roots', `UPDATE ledger_roots SET created_at = 5 WHERE number = 1`],
  ['the head of an account', 'ledger_heads', `UPDATE ledger_heads SET number = 2`],
] as const;

/** What statements must be over every engine. `allowChanges` lets rows of the ledger and of its seals be changed by hand. */
export function describeStatements(
  name: string,
  open: () => Promise<Engine>,
  allowChanges: (engine: Engine, table: string) => Promise<unknown>,
  handMade: readonly (readonly [what: string, table: string, sql: string])[] = handChanges,
): void {
  const setUp = async (engineOf = open) => {
    const engine = await engineOf();
    onTestFinished(() => engine.close());
    let nowMs = startMs;
    const store = createStore(engine, { nextId: () => randomUUID(), now: () => nowMs, report: () => {} });
    await store.createKey(key, 'hash', 1_000);
    const tools = statementsOver(engine, () => nowMs);
    return {
      engine,
      store,
      ...tools,
      use: async (day: number, chargeNanos: number, of = key.id) => {
        nowMs = startMs + day * dayMs;
        const requestId = idOf(randomUUID(), nowMs);
        const begun = { ...opened('', 1), requestId, keyId: of };
        await store.open(begun);
        await store.settle({ ...settled('', chargeNanos), requestId, begun: beginningOf(begun) });
      },
      /** Adds rows of one nano-USD each, faster than requests do. */
      addRows: async (from: number, to: number) => {
        const inserted = say(
          `WITH RECURSIVE numbers (number) AS (
             SELECT CAST(${from} AS BIGINT) UNION ALL SELECT number + 1 FROM numbers WHERE number < ${to})
           INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, reference, posting)
           SELECT '${key.id}', number, ${startMs}, 'credit', 1, 'reference ' || number, 'posting' FROM numbers`,
        );
        const count = to - from + 1;
        const counted = say(
          `UPDATE accounts SET postings = ${to}, balance = balance + ${count} WHERE key_id = '${key.id}'`,
        );
        await engine.run([inserted, counted]);
      },
      removeBefore: async (day: number) => {
        const retention = createRetention(engine);
        const beforeMs = startMs + day * dayMs;
        const records = await retention.listOldest(beforeMs, null, 500);
        await retention.removeRecords(
          records.map(({ requestId }) => ({ requestId, isLost: false })),
          beforeMs,
        );
        return retention.foldLedgers(setImmediate);
      },
      faults: async () => (await verifyLedger(createLedgerAudit(engine))).faults,
    };
  };

  describe(`${name}: statements`, () => {
    test('have the rows of their period: two periods that meet share none, and lack none', async () => {
      const { use, state, faultsOf } = await setUp();
      for (const day of [1, 2, 2, 3, 5]) await use(day, 10 + day);
      const from = (day: number): number => startMs + day * dayMs;
      const parts = [
        await state(key.id, { toMs: from(2) }),
        await state(key.id, { fromMs: from(2), toMs: from(4) }),
        await state(key.id, { fromMs: from(4) }),
      ];
      const read = parts.map(readStatement);
      expect(read.map(({ rows }) => rows.map(({ number }) => number))).toEqual([[1, 2], [3, 4, 5], [6]]);
      expect(read.map(({ opening, closing }) => [opening.balanceNanos, closing.balanceNanos])).toEqual([
        [0n, 989n],
        [989n, 952n],
        [952n, 937n],
      ]);
      for (const part of parts) expect(await faultsOf(part)).toEqual([]);
      expect(compareStatements(read.map((statement, at) => ({ name: `${at}`, statement })))).toEqual([]);
      const empty = await state(key.id, { fromMs: from(9), toMs: from(9) });
      expect(readStatement(empty)).toMatchObject({
        rows: [],
        opening: { number: 6 },
        closing: { number: 6 },
      });
    });

    test('go on behind a fold, with the same hashes as before it', async () => {
      const { use, state, faultsOf, removeBefore, makeRoot, faults } = await setUp();
      for (let day = 0; day < 6; day++) await use(day, 10 + day);
      const before = await state(key.id);
      await makeRoot();
      expect(await removeBefore(3)).toBe(4);
      const after = await state(key.id);
      const [whole, rest] = [readStatement(before), readStatement(after)];
      expect(rest).toMatchObject({ folded: 4, opening: { number: 4 } });
      expect(rest.rows).toEqual(whole.rows.slice(4));
      expect(rest.closing).toEqual(whole.closing);
      expect(await faultsOf(after)).toEqual([]);
      await use(6, 1);
      await removeBefore(9);
      await use(9, 2);
      const last = await state(key.id);
      expect(await faultsOf(last)).toEqual([]);
      const all = [before, after, last].map((text, at) => ({
        name: `${at}`,
        statement: readStatement(text),
      }));
      expect(compareStatements(all)).toEqual([]);
      expect(await faults()).toEqual([]);
    });

    test('begin behind rows that were folded by a version without seals, and go on from there', async () => {
      const { engine, use, state, faultsOf, faults, makeRoot, removeBefore } = await setUp();
      await allowChanges(engine, 'ledger_folds');
      await engine.run([
        say(`INSERT INTO ledger_folds (key_id, number, credits, charges) VALUES ('${key.id}', 1, 1000, 0)`),
        say(`INSERT INTO folded_credits (key_id, number, created_at, delta, reference, posting)
             SELECT key_id, number, created_at, delta, reference, posting FROM ledger_rows`),
        say('DELETE FROM ledger_rows'),
      ]);
      for (let day = 0; day < 3; day++) await use(day, 10);
      await makeRoot();
      const text = await state(key.id);
      expect(await faultsOf(text)).toEqual([]);
      expect(readStatement(text)).toMatchObject({ folded: 1, opening: { number: 1, balanceNanos: 1_000n } });
      expect(await removeBefore(2)).toBe(2);
      const later = await state(key.id);
      expect(await faultsOf(later)).toEqual([]);
      expect(readStatement(later).closing).toEqual(readStatement(text).closing);
      expect(await faults()).toEqual([]);
    });

    test('end after their most rows, and the next one goes on behind the last', async () => {
      const { addRows, state, faultsOf, faults } = await setUp();
      await addRows(2, 12_345);
      const first = readStatement(await state(key.id));
      expect(first).toMatchObject({ hasMore: true, closing: { number: 10_000 } });
      const text = await state(key.id, { after: 10_000 });
      expect(readStatement(text)).toMatchObject({ hasMore: false, closing: { number: 12_345 } });
      expect(readStatement(text).opening).toEqual(first.closing);
      expect(await faultsOf(text)).toEqual([]);
      await expect(state(key.id, { after: 12_346 })).rejects.toThrow(
        "Invalid 'after': the last row is 12345.",
      );
      expect(await faults()).toEqual([]);
    });

    test('are in a root that follows from the one before, however many accounts there are', async () => {
      const { store, use, state, faultsOf, makeRoot, statements, faults } = await setUp();
      expect(readStatement(await state(key.id)).root).toBeNull();
      const ids = Array.from({ length: 6 }, (_, at) => `key_${at}`);
      for (const id of ids) await store.createKey({ ...key, id, name: id }, `hash ${id}`, 5);
      const first = await makeRoot();
      expect(first).toMatchObject({ number: 1, accounts: 7 });
      await use(1, 7);
      const second = await makeRoot();
      expect(second).toMatchObject({ number: 2, previous: first?.hash });
      await use(2, 7);
      for (const id of [key.id, ...ids]) {
        const text = await state(id);
        expect(await faultsOf(text)).toEqual([]);
        const { root } = readStatement(text);
        expect(root).toMatchObject({ number: 2, tree: second?.tree });
        expect(root?.head.number).toBe(id === key.id ? 2 : 1);
      }
      expect((await statements.roots(null, 5)).map((root) => hashOfRoot(root) === root.hash)).toEqual([
        true,
        true,
      ]);
      expect(await faults()).toEqual([]);
    });

    test('are in one root for each number, though several processes make it at once', async () => {
      const { engine, store, use, makeRoot, faults, statements } = await setUp();
      const other = statementsOver(engine, () => 5);
      for (let round = 0; round < 4; round++) {
        await use(round, 1);
        const made = [makeRoot(), other.makeRoot(), makeRoot()];
        await Promise.all([
          ...made,
          use(round, 2),
          store.createKey({ ...key, id: `key_${round}`, name: 'x' }, `${round}`, 3),
        ]);
        expect((await Promise.all(made)).filter((root) => root !== null).length).toBeLessThanOrEqual(
          1 + round * 2,
        );
        expect(await faults()).toEqual([]);
      }
      await makeRoot();
      const numbers = (await statements.roots(null, 50)).map(({ number }) => number);
      expect(numbers).toEqual(numbers.map((_, at) => numbers.length - at));
      expect(await faults()).toEqual([]);
    });

    test('are in no root with heads that another process has changed meanwhile', async () => {
      const { makeRoot, roots, chain, use, faults } = await setUp();
      const first = await makeRoot();
      if (first === null) throw new Error('there is no root');
      const changes = await roots.headChanges();
      await use(1, 2);
      const { hash } = await chain.stateAt(key.id, 2, setImmediate);
      await roots.storeHeads(2, [{ keyId: key.id, number: 2, hash }]);
      expect(await roots.storeRoot({ ...first, number: 2 }, changes)).toBe(false);
      expect(await makeRoot()).toMatchObject({ number: 2 });
      // Heads for a root that is there already come too late.
      await roots.storeHeads(2, [{ keyId: key.id, number: 1, hash: 'late' }]);
      expect(await faults()).toEqual([]);
    });

    test('share one key that is made once, and list those that have signed before', async () => {
      const { engine, state, statements } = await setUp();
      const [one, other] = [statementsOver(engine, () => 1), statementsOver(engine, () => 2)];
      await Promise.all([one.state(key.id), other.state(key.id), state(key.id)]);
      const signers = [await one.state(key.id), await other.state(key.id), await state(key.id)];
      expect(new Set(signers.map((text) => readStatement(text).signedBy)).size).toBe(1);
      const { current, keys } = await statements.keys();
      expect(keys.map(({ id }) => id)).toContain(current);
    });

    test.each(handMade)(
      'are not made of what was changed behind them: the audit finds %s',
      async (_what, table, sql) => {
        const { engine, use, addRows, makeRoot, faults, removeBefore, state, faultsOf } = await setUp();
        await use(0, 1);
        await addRows(3, 2_100);
        await makeRoot();
        await makeRoot();
        expect(await faults()).toEqual([]);
        await allowChanges(engine, table);
        await engine.run([say(sql)]);
        const found = await faults();
        expect(found.some((fault) => /not what was sealed|ledger root/.test(fault))).toBe(true);
        if (table !== 'record_rows') return;
        // What contradicts its seal is kept as evidence, and its statement says so to its reader.
        expect(await removeBefore(3)).toBe(0);
        expect(await faultsOf(await state(key.id))).not.toEqual([]);
      },
    );

    test('are audited a part at a time, until every account had its turn', async () => {
      const { engine, store, makeRoot } = await setUp();
      for (let number = 0; number < 30; number++)
        await store.createKey({ ...key, id: `key_${number}`, name: `${number}` }, `hash ${number}`, 5);
      await makeRoot();
      await allowChanges(engine, 'ledger_rows');
      await engine.run([say(`UPDATE ledger_rows SET created_at = 1 WHERE key_id IN ('key_0', 'key_9')`)]);
      const audit = createLedgerAudit(engine);
      const found: string[] = [];
      for (let turn = 0; turn < 5; turn++)
        for await (const faults of audit.sealFaults(setImmediate, 10)) found.push(...faults);
      expect(found.map((fault) => fault.split(':')[0]).slice(0, 2)).toEqual(['key_0', 'key_9']);
    });
  });
}
