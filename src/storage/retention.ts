import { readPages } from '../domain/pause.ts';
import { ChainError } from '../domain/ports/ledger-chain.ts';
import type { ReadRecord, Retention } from '../domain/ports/retention.ts';
import type { ChainState } from '../domain/statements/chain.ts';
import type { Engine, Row, SqlValue, Statement } from './engine.ts';
import { lockAccount } from './ledger/accounts.ts';
import { createLedgerChain, insertSeal } from './ledger/ledger-chain.ts';
import { readRecord } from './records/read-record.ts';
import { selectRemovedBefore } from './records/record-pages.ts';
import { findRequestKey, isBehind, isOneOf, requestKeyOf } from './records/request-key.ts';
import { lookUpRows, raw, readRows, sql } from './statements.ts';

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
      const next = (last: Row | null) => readRows(engine, selectFoldable(last?.['key_id'] ?? '', beforeMs));
      for await (const accounts of readPages(next, accountsPerRead, pause))
        for (const { key_id: keyId, folded: from } of accounts)
          folded += await foldAccount(engine, String(keyId), Number(from), beforeMs, pause);
      return folded;
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

/** Ended records from before a time, oldest first. */
function selectOldest(
  beforeMs: number,
  after: Pick<ReadRecord, 'requestId'> | null,
  limit: number,
): Statement {
  const start = after === null ? raw('') : sql`${isBehind(requestKeyOf(after.requestId))} AND `;
  return sql`SELECT * FROM records WHERE ${start}created_at < ${beforeMs} ORDER BY created_at, tail LIMIT ${limit}`;
}

const selectOldestTime: Statement = sql`SELECT created_at FROM records ORDER BY created_at LIMIT ${1}`;

/**
 * Removes some records, in one unit that says from when they are; their charges stay in the ledger. The rows of the deletions
 * are those that are gone.
 */
function removeRecords(records: readonly ReadRecord[], beforeMs: number): readonly Statement[] {
  // What is no id of a request is that of no record.
  const some = (isLost: boolean): Statement =>
    isOneOf(
      records.flatMap((record) => (record.isLost === isLost ? (findRequestKey(record.requestId) ?? []) : [])),
    );
  const [settled, lost] = [some(false), some(true)];
  return [
    sql`INSERT INTO record_removals (id, removed_before) VALUES (1, CAST(${beforeMs} AS BIGINT))
      ON CONFLICT (id) DO UPDATE SET removed_before = excluded.removed_before
        WHERE record_removals.removed_before < excluded.removed_before`,
    sql`INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, request_id)
      SELECT key_id, charge_number, settled_at, 'charge', -charge, request_id FROM records
      WHERE ${settled} AND created_at < ${beforeMs} AND charge_number IS NOT NULL`,
    sql`DELETE FROM record_rows WHERE ${settled} AND created_at < ${beforeMs} AND settled_ms IS NOT NULL RETURNING created_at`,
    sql`DELETE FROM record_rows WHERE ${lost} AND created_at < ${beforeMs} AND settled_ms IS NULL RETURNING created_at`,
  ];
}

/** How many accounts are looked through in one read, and how many postings are folded in one unit: some milliseconds each. */
const accountsPerRead = 500;
const postingsPerFold = 1_000;

/** The next accounts whose oldest posting that is not folded is from before a time. */
function selectFoldable(keyId: SqlValue, beforeMs: number): Statement {
  return sql`SELECT accounts.key_id AS key_id, coalesce(ledger_folds.number, 0) AS folded FROM accounts
    LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id
    WHERE accounts.key_id > ${keyId} AND
      (SELECT created_at FROM ledger_rows WHERE ledger_rows.key_id = accounts.key_id ORDER BY number LIMIT 1) < ${beforeMs}
    ORDER BY accounts.key_id LIMIT ${accountsPerRead}`;
}

/** The postings behind a number, each with whether its record is still there. */
export function selectPostings(keyId: string, after: number): Statement {
  return sql`SELECT number, created_at, has_record FROM ledger
    WHERE key_id = ${keyId} AND number > ${after} AND number <= ${after + postingsPerFold} ORDER BY number`;
}

/** The number of the last of some postings that can be folded with all before it; `after` if the first one can't be. */
function lastFoldable(postings: readonly Row[], after: number, beforeMs: number): number {
  const end = postings.findIndex(
    (row, at) =>
      Number(row['number']) !== after + at + 1 ||
      Number(row['created_at']) >= beforeMs ||
      Number(row['has_record']) === 1,
  );
  return after + (end === -1 ? postings.length : end);
}

/**
 * Folds the postings of one account up to that of a state of its chain, in one unit, which seals that state: the chain goes on
 * behind it. The fold is written only if none of them is missing: an audit must still find a ledger that was damaged. A
 * trigger lets no other rows be deleted than those that a fold stands for.
 */
export function foldLedger(keyId: string, state: ChainState): readonly Statement[] {
  const upTo = state.number;
  return [
    lockAccount(keyId),
    insertSeal(keyId, state),
    sql`INSERT INTO ledger_folds (key_id, number, credits, charges)
      SELECT CAST(${keyId} AS TEXT), CAST(${upTo} AS BIGINT),
        CAST(coalesce(sum(CASE WHEN kind = 'credit' THEN delta ELSE 0 END), 0) AS BIGINT),
        CAST(coalesce(-sum(CASE WHEN kind = 'charge' THEN delta ELSE 0 END), 0) AS BIGINT)
      FROM ledger_rows WHERE key_id = ${keyId} AND number <= ${upTo}
      HAVING count(*) > 0 AND count(*) = ${upTo} - coalesce((SELECT number FROM ledger_folds WHERE key_id = ${keyId}), 0)
      ON CONFLICT (key_id) DO UPDATE SET number = excluded.number,
        credits = ledger_folds.credits + excluded.credits, charges = ledger_folds.charges + excluded.charges`,
    sql`INSERT INTO folded_credits (key_id, number, created_at, delta, reference, posting)
      SELECT key_id, number, created_at, delta, reference, posting FROM ledger_rows
      WHERE key_id = ${keyId} AND number <= (SELECT number FROM ledger_folds WHERE key_id = ${keyId}) AND kind = 'credit'`,
    sql`DELETE FROM ledger_rows WHERE key_id = ${keyId} AND number <= (SELECT number FROM ledger_folds WHERE key_id = ${keyId})
      RETURNING number`,
  ];
}
