import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor } from '../../domain/audit/audit-line.ts';
import { differencesOf, fieldsOf, noFields } from '../../domain/audit/differences.ts';
import type { FieldChange } from '../../domain/audit/differences.ts';
import type { StoredPeriod } from '../../domain/budgets/budget.ts';
import { coveringReference } from '../../domain/ports/accounts.ts';
import type { Account, BookedCredit, Credit, Accounts } from '../../domain/ports/accounts.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import { formatUsd, maxNanos } from '../../shared/money.ts';
import { addLines } from '../audit/audit-lines.ts';
import type { Engine, Results, Row, Statement } from '../engine.ts';
import { listOf, lookUpRows, readCount, sql } from '../statements.ts';

/** Stores the money of keys over any engine. */
export function createAccounts(engine: Engine, nextId: NextId, nowMs: () => number): Accounts {
  return {
    async credit(credit, by) {
      const [posting, bookedAtMs] = [nextId(), nowMs()];
      const results = await engine.run(bookCredit(credit, posting, bookedAtMs, by));
      return readBookedCredit(results, credit.nanos, posting);
    },
    async accounts(keyIds) {
      const found = await lookUpRows(engine, selectAccounts(keyIds));
      return new Map(found.map((row) => [String(row['key_id']), readAccount(row)]));
    },
    async budgetPeriods(ids) {
      const found = await lookUpRows(engine, selectBudgets(ids));
      return new Map(found.map((row) => [String(row['id']), readPeriod(row)]));
    },
    countLowBalances: (belowNanos, atMs) => readCount(engine, countLowBalances(belowNanos, atMs)),
    countWarnedBudgets: (atMs) => readCount(engine, countWarnedBudgets(atMs)),
  };
}

/**
 * Every unit that moves money locks the account's row first, and a record's row only after it. So units that run at
 * once, on an engine that allows that, can neither deadlock nor read sums that another one is about to change.
 */
export function lockAccount(keyId: string): Statement {
  return sql`UPDATE accounts SET held = held WHERE key_id = ${keyId}`;
}

/**
 * Books a credit, in one unit. The first insert is the gate: a reference that is booked already, also in a folded part of
 * the ledger, keeps its own posting, and the statements behind it happen only under this one's. What a key spent while it
 * had no balance is covered with its first credit, so that what was paid in is always what is free, held and spent.
 */
export function bookCredit(
  { keyId, nanos, reference }: Credit,
  posting: string,
  bookedAt: number,
  by?: Actor,
): readonly Statement[] {
  const isBooked = sql`EXISTS (SELECT 1 FROM ledger_rows WHERE key_id = ${keyId} AND reference = ${reference} AND posting = ${posting})`;
  return [
    lockAccount(keyId),
    sql`INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, reference, posting)
      SELECT key_id, postings + 1, CAST(${bookedAt} AS BIGINT), 'credit', CAST(${nanos} AS BIGINT), ${reference}, ${posting} FROM accounts
      WHERE key_id = ${keyId} AND coalesce(balance, 0) + held + spent <= ${maxNanos - nanos}
        AND NOT EXISTS (SELECT 1 FROM folded_credits WHERE key_id = ${keyId} AND reference = ${reference})
      ON CONFLICT (key_id, reference) WHERE reference IS NOT NULL DO NOTHING`,
    sql`INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, reference, posting)
      SELECT key_id, postings + 2, CAST(${bookedAt} AS BIGINT), 'credit', spent, ${coveringReference}, ${posting} FROM accounts
      WHERE key_id = ${keyId} AND balance IS NULL AND spent > 0 AND ${isBooked}
      ON CONFLICT (key_id, reference) WHERE reference IS NOT NULL DO NOTHING`,
    sql`UPDATE accounts SET
        postings = postings + CASE WHEN balance IS NULL AND spent > 0 THEN 2 ELSE 1 END,
        balance = coalesce(balance, 0) + ${nanos}
      WHERE key_id = ${keyId} AND ${isBooked}`,
    ...(by === undefined
      ? []
      : [addLines([keyEntry(by, 'key.credit', keyId, paymentOf(nanos, reference))], bookedAt, isBooked)]),
    sql`SELECT delta, posting FROM ledger_rows WHERE key_id = ${keyId} AND reference = ${reference}
      UNION ALL SELECT delta, posting FROM folded_credits WHERE key_id = ${keyId} AND reference = ${reference}`,
    selectAccounts([keyId]),
  ];
}

function paymentOf(nanos: number, reference: string): readonly FieldChange[] {
  return differencesOf(noFields, fieldsOf({ amount: formatUsd(nanos), reference }));
}

/** What the unit of `bookCredit` did, from the rows of its statements, which may follow others. */
function readBookedCredit(results: Results, nanos: number, posting: string): BookedCredit {
  const [[booked] = [], [found] = []] = results.slice(-2);
  if (found === undefined) return { result: 'no such key', account: null };
  const account = readAccount(found);
  if (booked === undefined) return { result: 'too much', account };
  if (booked['posting'] === posting) return { result: 'booked', account };
  return { result: Number(booked['delta']) === nanos ? 'booked before' : 'other amount', account };
}

function selectAccounts(keyIds: readonly string[]): Statement {
  return sql`SELECT key_id, balance, held, spent FROM accounts WHERE key_id IN (${listOf(keyIds)})`;
}

/** Counts keys in use whose balance is below their own mark, or else below this one. */
function countLowBalances(belowNanos: number, atMs: number): Statement {
  return sql`SELECT count(*) AS count FROM accounts JOIN api_keys ON id = key_id
    WHERE balance < coalesce(low_balance, ${belowNanos}) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${atMs})`;
}

function readAccount(row: Row): Account {
  return {
    balanceNanos: row['balance'] === null ? null : Number(row['balance']),
    heldNanos: Number(row['held']),
    spentNanos: Number(row['spent']),
  };
}

export function selectBudgets(ids: readonly string[]): Statement {
  return sql`SELECT id, period_start, period_end, spent, held, level FROM budgets WHERE id IN (${listOf(ids)})`;
}

/** Counts the budgets that have reached a warning level in the period of a time. */
function countWarnedBudgets(atMs: number): Statement {
  return sql`SELECT count(*) AS count FROM budgets WHERE level > 0 AND period_end > ${atMs}`;
}

export function readPeriod(row: Row): StoredPeriod {
  return {
    startMs: Number(row['period_start']),
    endMs: Number(row['period_end']),
    spentNanos: Number(row['spent']),
    heldNanos: Number(row['held']),
    level: Number(row['level']),
  };
}
