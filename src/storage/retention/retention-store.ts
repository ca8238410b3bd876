import { ChainError } from '../../domain/ports/ledger-chain.ts';
import type { Retention } from '../../domain/ports/retention.ts';
import { createLedgerChain } from '../ledger/ledger-chain.ts';
import type { Engine, Statement } from '../engine.ts';
import { lookUpRows, readRows } from '../read-rows.ts';
import { readRecord } from '../records/record-pages.ts';
import {
  accountsPerRead,
  foldLedger,
  lastFoldable,
  postingsPerFold,
  selectFoldable,
  selectPostings,
} from './fold-statements.ts';
import { removeRecords, selectOldest, selectOldestTime, selectRemovedBefore } from './removal-statements.ts';

/** Ends old records over any engine, beside the units that write new ones. */
export function createRetention(engine: Engine): Retention {
  const readTime = async (statement: Statement, column: string): Promise<number | null> => {
    const [row] = await lookUpRows(engine, statement);
    return row === undefined ? null : Number(row[column]);
  };
  const removedBefore = (): Promise<number | null> => readTime(selectRemovedBefore, 'removed_before');
  return {
    async listOldest(beforeMs, after, limit) {
      return (await readRows(engine, selectOldest(beforeMs, after, limit))).map(readRecord);
    },
    async removeRecords(records, beforeMs) {
      if (records.length === 0) return 0;
      const [, ...deleted] = await engine.run(removeRecords(records, beforeMs));
      return deleted.reduce((count, rows) => count + rows.length, 0);
    },
    async foldLedgers(pause) {
      const beforeMs = await removedBefore();
      if (beforeMs === null) return 0;
      let folded = 0;
      for (let last = ''; ; await pause()) {
        const accounts = await readRows(engine, selectFoldable(last, beforeMs));
        for (const account of accounts) {
          last = String(account['key_id']);
          folded += await foldAccount(engine, last, Number(account['folded']), beforeMs, pause);
        }
        if (accounts.length < accountsPerRead) return folded;
      }
    },
    removedBefore,
    oldestRecord: () => readTime(selectOldestTime, 'created_at'),
  };
}

/** Folds what can be folded of one account, some postings at a time; resolves with how many. */
async function foldAccount(
  engine: Engine,
  keyId: string,
  from: number,
  beforeMs: number,
  pause: () => Promise<void>,
): Promise<number> {
  const chain = createLedgerChain(engine);
  let folded = 0;
  for (let after = from; ; await pause()) {
    const upTo = lastFoldable(await readRows(engine, selectPostings(keyId, after)), after, beforeMs);
    if (upTo > after) {
      const state = await chain.recompute(keyId, after, upTo).catch(nothingForFaults);
      // Rows that are not those that were sealed are evidence, and stay; the audit reports them.
      if (state === null) return folded;
      folded += (await engine.run(foldLedger(keyId, state))).at(-1)?.length ?? 0;
    }
    if (upTo < after + postingsPerFold) return folded;
    after = upTo;
  }
}

function nothingForFaults(error: unknown): null {
  if (error instanceof ChainError) return null;
  throw error;
}
