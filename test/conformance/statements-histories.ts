import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareStatements } from '../../src/domain/statements/check-statement.ts';
import { readStatement } from '../../src/domain/statements/read-statement.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createStore } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { faultsOf, statementsOver } from '../support/statement-tools.ts';
import { beginningOf } from '../support/stored-rows.ts';
import { dayMs } from './retention.ts';
import { idOf, key, opened, settled, startMs } from './store.ts';

/** How many histories share a database: each has accounts of its own, over all of which roots are made. */
const perDatabase = 25;

type Step =
  | { readonly kind: 'use'; readonly account: number; readonly charge: number; readonly backMs: number }
  | { readonly kind: 'credit'; readonly account: number; readonly reference: number }
  | { readonly kind: 'pass' | 'remove' | 'root' | 'audit' }
  | {
      readonly kind: 'state';
      readonly account: number;
      readonly from: number | null;
      readonly days: number | null;
      /** Requests that are settled meanwhile, and whether old records are removed meanwhile. */
      readonly uses: number;
      readonly folds: boolean;
    };

const account = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    // Nodes have clocks of their own: a later row may have an earlier time.
    arbitrary: fc.record({
      kind: fc.constant('use'),
      account,
      charge: fc.nat(50),
      backMs: fc.constantFrom(0, 0, 0, dayMs),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('credit'), account, reference: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('pass', 'remove', 'root', 'audit') }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('state'),
      account,
      from: fc.option(fc.nat(6)),
      days: fc.option(fc.nat(6)),
      uses: fc.nat(2),
      folds: fc.boolean(),
    }),
  },
);

/** How a reader's file may differ from what was sent, by a number that says where. */
const tamperings: Readonly<Record<string, (lines: string[], where: number) => string>> = {
  'a row that was changed': (lines, where) =>
    onRow(lines, where, (all, at) => (all[at] = (all[at] ?? '').replace(/\d"$/, '!"'))),
  'a row that was dropped': (lines, where) => onRow(lines, where, (all, at) => void all.splice(at, 1)),
  'a pair that was swapped': (lines, where) =>
    onRow(lines, where, (all, at) => void all.splice(at, 2, all[at + 1] ?? '', all[at] ?? '')),
  'a file that was cut off': (lines, where) => {
    const text = lines.join('\n');
    return text.slice(0, where % text.length);
  },
  'a changed opening balance': (lines) => changeBalance(lines, 'opening'),
  'a changed closing balance': (lines) => changeBalance(lines, 'closing'),
  'rows of another key': (lines) =>
    lines.map((line) => (line.startsWith('key ') ? 'key "key_other"' : line)).join('\n'),
};

function onRow(lines: string[], where: number, edit: (lines: string[], at: number) => void): string {
  const rows = [...lines.keys()].filter((at) => lines[at]?.startsWith('row '));
  const at = rows[where % Math.max(1, rows.length)] ?? lines.length - 3;
  edit(lines, at);
  return lines.join('\n');
}

function changeBalance(lines: string[], name: string): string {
  const at = lines.findIndex((line) => line.startsWith(`${name} `));
  lines[at] = (lines[at] ?? '').replace(/\d$/, (digit) => (digit === '9' ? '8' : '9'));
  return lines.join('\n');
}

/** The days of a run begin behind those of all others: what was removed before a time stays removed. */
let lastDay = 0;

/** Plays a history; resolves with the statements that were made in it, and the keys that signed them. */
async function play(engine: Engine, run: string, steps: readonly Step[]) {
  const firstDay = (lastDay += 10);
  const nowMs = (): number => startMs + lastDay * dayMs;
  let ids = 0;
  const store = createStore(engine, { nextId: () => `${run} id ${++ids}`, now: nowMs, report: () => {} });
  const retention = createRetention(engine);
  const tools = statementsOver(engine, nowMs);
  const accounts = [0, 1].map((number) => `${run} "key" ${number}`);
  for (const [number, id] of accounts.entries())
    await store.createKey({ ...key, id, name: id, hasBalance: number === 0 }, id, number === 0 ? 500 : null);
  const use = async (number: number, charge: number, backMs = 0): Promise<void> => {
    const requestId = idOf(`${run} request ${++ids}`, nowMs());
    const begun = { ...opened('', 0), requestId, keyId: accounts[number] ?? '' };
    await store.open(begun);
    // Rows have the time of the store's clock.
    const days = backMs / dayMs;
    lastDay -= days;
    await store
      .settle({ ...settled('', charge), requestId, begun: beginningOf(begun) })
      .finally(() => (lastDay += days));
  };
  const made: { readonly account: number; readonly text: string }[] = [];
  const audits: string[] = [];
  const state = async (number: number, period: Parameters<typeof tools.state>[1] = {}): Promise<void> => {
    made.push({ account: number, text: await tools.state(accounts[number] ?? '', period) });
  };
  const remove = async (): Promise<void> => {
    const beforeMs = nowMs();
    const read = await retention.listOldest(beforeMs, null, 50);
    await retention.removeRecords(
      read.map(({ requestId }) => ({ requestId, isLost: false })),
      beforeMs,
    );
    await retention.foldLedgers(setImmediate);
  };
  for (const action of steps)
    switch (action.kind) {
      case 'use':
        await use(action.account, action.charge, action.backMs);
        break;
      case 'credit':
        await store.credit({
          keyId: accounts[action.account] ?? '',
          nanos: 7,
          reference: `ü "${action.reference}"\n`,
        });
        break;
      case 'pass':
        lastDay++;
        break;
      case 'remove':
        await remove();
        break;
      case 'root':
        await tools.makeRoot();
        break;
      case 'audit':
        audits.push(...(await verifyLedger(createLedgerAudit(engine))).faults);
        break;
      case 'state': {
        const fromMs = action.from === null ? null : startMs + (firstDay + action.from) * dayMs;
        const toMs = action.days === null ? null : (fromMs ?? startMs) + action.days * dayMs;
        const uses = Array.from({ length: action.uses }, () => use(action.account, 3));
        const removals = action.folds ? [remove()] : [];
        await Promise.all([...uses, ...removals, state(action.account, { fromMs, toMs })]);
      }
    }
  await tools.makeRoot();
  for (const number of accounts.keys()) await state(number);
  return { made, audits, keys: (await tools.statements.keys()).keys };
}

/** Random histories of accounts, and every statement of them. */
export function describeStatementHistories(name: string, open: () => Promise<Engine>, runs: number): void {
  describe(`statements of random histories on ${name}`, () => {
    let engine: Engine;
    beforeAll(async () => {
      engine = await open();
    });
    afterAll(() => engine?.close());

    test(
      'are valid and agree with each other, and what was done to a file is found',
      async () => {
        let run = 0;
        const property = fc.asyncProperty(
          fc.array(step, { maxLength: 30, size: 'max' }),
          fc.nat(),
          async (steps, where) => {
            if (run++ % perDatabase === perDatabase - 1) {
              await engine.close();
              engine = await open();
            }
            const { made, audits, keys } = await play(engine, `${name} ${run}`, steps);
            expect(audits).toEqual([]);
            for (const { text } of made) expect(faultsOf(text, keys)).toEqual([]);
            for (const number of [0, 1]) {
              const own = made.filter(({ account: of }) => of === number);
              const read = own.map(({ text }, at) => ({ name: `${at}`, statement: readStatement(text) }));
              expect(compareStatements(read)).toEqual([]);
            }
            const last = made.at(-1)?.text ?? '';
            for (const [what, tamper] of Object.entries(tamperings)) {
              const changed = tamper(last.split('\n'), where);
              expect([what, changed === last || faultsOf(changed, keys).length > 0]).toEqual([what, true]);
            }
          },
        );
        await fc.assert(property, propertyRun(runs));
        expect(run).toBeGreaterThanOrEqual(runs);
      },
      120_000 + propertyRun(runs).numRuns * 600,
    );
  });
}
