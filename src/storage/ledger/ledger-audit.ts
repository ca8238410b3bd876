import { readPages } from '../../domain/pause.ts';
import type { Pause } from '../../domain/pause.ts';
import type { AuditedAccount, LedgerAudit } from '../../domain/ports/ledger-audit.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readRecord } from '../records/read-record.ts';
import { isBehind, requestKeyOf } from '../records/request-key.ts';
import { listOf, raw, readRows, sql } from '../statements.ts';
import { readExtent } from '../usage/usage-plan.ts';
import {
  readKeyUsage,
  selectKeyBehind,
  selectKeyUsage,
  selectWholeExtent,
} from '../usage/usage-statements.ts';
import { auditBudgets, auditSpending } from './budget-audit.ts';
import { createSealAudit } from './seal-audit.ts';

/** How many accounts and records are read at once: each takes a few milliseconds. */
const accountsPerRead = 500;
const recordsPerRead = 200;

const openHolds: Statement = sql`SELECT key_id, hold FROM accounts JOIN open_rows ON account = accounts.number`;

/** How often accounts are read again whose postings are folded, or whose usage is rolled up, while they are added up. */
const maxRepeats = 10;

/** Reads the rows behind the accounts for their verification, a page at a time and never in front of a commit. */
export function createLedgerAudit(engine: Pick<Engine, 'read'>): LedgerAudit {
  const nextSettled = (last: Row | null) => readRows(engine, selectSettledAfter(last));
  return {
    audit: (pause) =>
      readPages((last) => auditPage(engine, last?.keyId ?? '', pause), accountsPerRead, pause),
    budgets: (pause) => auditBudgets(engine, pause),
    spending: (pause) => auditSpending(engine, pause),
    async *settled(pause) {
      for await (const rows of readPages(nextSettled, recordsPerRead, pause))
        yield rows.map((row) => ({ record: readRecord(row), postedNanos: Number(row['posted']) }));
    },
    sealFaults: createSealAudit(engine),
  };
}

/**
 * Adds up the accounts that a statement finds. One whose postings are folded meanwhile is read again: its earlier sum may
 * lack some of them.
 */
async function auditPage(
  engine: Pick<Engine, 'read'>,
  last: string,
  pause: Pause,
): Promise<readonly AuditedAccount[]> {
  const found = new Map<string, AuditedAccount>();
  let statement = selectAccountsAfter(last);
  const [end = [], ...extentRows] = await engine.read([
    selectKeyBehind(last, accountsPerRead),
    ...selectWholeExtent,
  ]);
  const keys = { from: last, upTo: end[0] === undefined ? null : String(end[0]['key_id']) };
  let extent = readExtent(extentRows);
  for (let repeats = 0; repeats < maxRepeats; repeats++) {
    // One read is one snapshot: the accounts, the ends of their ledgers, what is open and their usage belong together.
    const [open = [], rows = [], used = [], ...extentNow] = await engine.read([
      openHolds,
      statement,
      selectKeyUsage(extent, keys),
      ...selectWholeExtent,
    ]);
    const now = readExtent(extentNow);
    if (now.version !== extent.version) {
      extent = now;
      continue;
    }
    const holds = sumHolds(open);
    const usage = readKeyUsage(used);
    const ledgers = rows.map(readLedger);
    const sums = await sumLedgers(engine, ledgers, pause);
    for (const row of rows) {
      const account = addUp(row, sums.get(String(row['key_id'])));
      const [openHoldNanos, usageNanos] = [holds, usage].map((one) => one.get(account.keyId) ?? 0) as [
        number,
        number,
      ];
      found.set(account.keyId, { ...account, openHoldNanos, usageNanos });
    }
    const [folds = []] = await engine.read([selectFolds(ledgers.map(({ keyId }) => keyId))]);
    const folded = new Map(folds.map((row) => [String(row['key_id']), Number(row['number'])]));
    const outdated = ledgers.filter((ledger) => (folded.get(ledger.keyId) ?? 0) !== ledger.folded);
    if (outdated.length === 0) return [...found.values()];
    statement = selectAccounts(outdated.map(({ keyId }) => keyId));
  }
  throw new Error(
    'postings are folded, or usage is rolled up, faster than they can be added up: verify the ledger again later',
  );
}

/** The columns of an account that is audited. A commit adds to its postings and to its ledger at once, or folds some. */
const auditedColumns = sql`accounts.key_id AS key_id, balance, held, spent, postings,
  (SELECT ledger_rows.number FROM ledger_rows WHERE ledger_rows.key_id = accounts.key_id
    ORDER BY ledger_rows.number DESC LIMIT 1) AS last_row,
  (SELECT charge_number FROM record_rows WHERE account = accounts.number AND charge_number IS NOT NULL
    ORDER BY charge_number DESC LIMIT 1) AS last_charge,
  ledger_folds.number AS folded, credits, charges,
  (SELECT sum(delta) FROM folded_credits WHERE folded_credits.key_id = ledger_folds.key_id) AS kept_credits
  FROM accounts LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id`;

/** The next page of accounts. */
function selectAccountsAfter(keyId: string): Statement {
  return sql`SELECT ${auditedColumns} WHERE accounts.key_id > ${keyId} ORDER BY accounts.key_id LIMIT ${accountsPerRead}`;
}

function selectAccounts(keyIds: readonly string[]): Statement {
  return sql`SELECT ${auditedColumns} WHERE accounts.key_id IN (${listOf(keyIds)})`;
}

function selectFolds(keyIds: readonly string[]): Statement {
  return sql`SELECT key_id, number FROM ledger_folds WHERE key_id IN (${listOf(keyIds)})`;
}

/** In the order in which they were made, in which they also lie on the disk: by their ids every row would be a jump. */
function selectSettledAfter(last: Row | null): Statement {
  const behind = last === null ? raw('') : sql`WHERE ${isBehind(requestKeyOf(String(last['request_id'])))}`;
  return sql`SELECT *, CASE WHEN charge_number IS NULL THEN 0 ELSE charge END AS posted FROM records ${behind}
    ORDER BY created_at, tail LIMIT ${recordsPerRead}`;
}

/** What the open requests of every key hold. */
function sumHolds(open: readonly Row[]): ReadonlyMap<string, number> {
  const holds = new Map<string, number>();
  for (const row of open) {
    const keyId = String(row['key_id']);
    holds.set(keyId, (holds.get(keyId) ?? 0) + Number(row['hold']));
  }
  return holds;
}

function readLedger(row: Row): NumberedLedger {
  const folded = Number(row['folded'] ?? 0);
  const last = Math.max(folded, Number(row['last_row']), Number(row['last_charge']));
  return { keyId: String(row['key_id']), folded, lastNumber: last };
}

/** An account with the sum of its ledger: of what is folded, and of the rows behind it. */
function addUp(row: Row, rows: LedgerSum = noRows): Omit<AuditedAccount, 'openHoldNanos' | 'usageNanos'> {
  const { keyId, folded, lastNumber } = readLedger(row);
  const [credits, charges] = [Number(row['credits'] ?? 0), Number(row['charges'] ?? 0)];
  return {
    keyId,
    balanceNanos: row['balance'] === null ? null : Number(row['balance']),
    heldNanos: Number(row['held']),
    spentNanos: Number(row['spent']),
    postings: Number(row['postings']),
    lastNumber,
    ledgerNanos: credits - charges + rows.ledgerNanos,
    chargedNanos: charges + rows.chargedNanos,
    ledgerRows: folded + rows.ledgerRows,
    doubledRows: rows.doubledRows,
    foldedCreditNanos: credits,
    keptCreditNanos: Number(row['kept_credits'] ?? 0),
  };
}

/** How many rows of the ledger are added up in one read, and of how many accounts: it takes a few milliseconds. */
const rowsPerRead = 2_000;
const ledgersPerRead = 100;

/** What some ledger rows of one account amount to. */
interface LedgerSum {
  readonly ledgerNanos: number;
  readonly chargedNanos: number;
  readonly ledgerRows: number;
  readonly doubledRows: number;
}

/** An account's ledger as it was at one moment: the rows behind those that are folded, up to a number. */
interface NumberedLedger {
  readonly keyId: string;
  /** The number of the last folded row; 0 without any. */
  readonly folded: number;
  /** The highest number of its rows; 0 without any. */
  readonly lastNumber: number;
}

/** Rows of one account's ledger that follow each other, at most as many as one read adds up. */
interface LedgerRange {
  readonly keyId: string;
  /** The number before the first row. */
  readonly after: number;
  readonly upTo: number;
}

/** What no rows amount to. */
const noRows: LedgerSum = { ledgerNanos: 0, chargedNanos: 0, ledgerRows: 0, doubledRows: 0 };

/**
 * Adds up the ledgers of some accounts behind what is folded, in as many reads as they need. The reads may be of several
 * moments: rows are never changed, those that come meanwhile have higher numbers, and whether some were folded is asked later.
 */
async function sumLedgers(
  engine: Pick<Engine, 'read'>,
  ledgers: readonly NumberedLedger[],
  pause: Pause,
): Promise<ReadonlyMap<string, LedgerSum>> {
  const sums = new Map<string, LedgerSum>();
  for (const [index, ranges] of readsOf(ledgers.flatMap(rangesOf)).entries()) {
    if (index > 0) await pause();
    const results = await engine.read(ranges.map(sumRange));
    for (const [at, { keyId }] of ranges.entries()) sums.set(keyId, add(sums.get(keyId), results[at]?.[0]));
  }
  return sums;
}

function rangesOf({ keyId, folded, lastNumber }: NumberedLedger): readonly LedgerRange[] {
  const count = Math.ceil((lastNumber - folded) / rowsPerRead);
  return Array.from({ length: count }, (_, index) => {
    const after = folded + index * rowsPerRead;
    return { keyId, after, upTo: Math.min(after + rowsPerRead, lastNumber) };
  });
}

/** Parts ranges into those of one read each. */
function readsOf(ranges: readonly LedgerRange[]): readonly (readonly LedgerRange[])[] {
  const reads: LedgerRange[][] = [];
  let rows = Number.POSITIVE_INFINITY;
  for (const range of ranges) {
    const more = range.upTo - range.after;
    const last = reads.at(-1);
    if (last === undefined || last.length === ledgersPerRead || rows + more > rowsPerRead) {
      reads.push([range]);
      rows = more;
    } else {
      last.push(range);
      rows += more;
    }
  }
  return reads;
}

function sumRange({ keyId, after, upTo }: LedgerRange): Statement {
  return sql`SELECT count(DISTINCT number) AS count, count(*) - count(DISTINCT number) AS doubled, coalesce(sum(delta), 0) AS total,
      coalesce(sum(CASE WHEN kind = 'charge' THEN delta ELSE 0 END), 0) AS charges
    FROM ledger WHERE key_id = ${keyId} AND number > ${after} AND number <= ${upTo}`;
}

function add(sum: LedgerSum = noRows, row: Row = {}): LedgerSum {
  return {
    ledgerNanos: sum.ledgerNanos + Number(row['total'] ?? 0),
    chargedNanos: sum.chargedNanos - Number(row['charges'] ?? 0),
    ledgerRows: sum.ledgerRows + Number(row['count'] ?? 0),
    doubledRows: sum.doubledRows + Number(row['doubled'] ?? 0),
  };
}
