import type { AuditedAccount, LedgerAudit } from '../../domain/ports/ledger-audit.ts';
import type { Pause } from '../../domain/pause.ts';
import { placesOf } from '../engine.ts';
import { auditBudgets, auditSpending } from './budget-audit.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readKeyUsage, selectKeyUsage, selectWholeExtent } from '../usage/key-usage.ts';
import { readExtent } from '../usage/usage-plan.ts';
import { selectKeyBehind } from '../usage/usage-statements.ts';
import { noRows, sumLedgers } from './ledger-sums.ts';
import { createSealAudit } from './seal-audit.ts';
import type { LedgerSum, NumberedLedger } from './ledger-sums.ts';
import { readRecord } from '../records/record-pages.ts';

/** How many accounts and records are read at once: each takes a few milliseconds. */
const accountsPerRead = 500;
const recordsPerRead = 200;

const openHolds: Statement = { sql: 'SELECT key_id, hold FROM open_requests', values: [] };

/** How often accounts are read again whose postings are folded, or whose usage is rolled up, while they are added up. */
const maxRepeats = 10;

/** Reads the rows behind the accounts for their verification, a page at a time and never in front of a commit. */
export function createLedgerAudit(engine: Pick<Engine, 'read'>): LedgerAudit {
  return {
    async *audit(pause) {
      for (let last = ''; ; await pause()) {
        const page = await auditPage(engine, last, pause);
        yield page;
        if (page.length < accountsPerRead) return;
        last = page.at(-1)?.keyId ?? '';
      }
    },
    budgets: (pause) => auditBudgets(engine, pause),
    spending: (pause) => auditSpending(engine, pause),
    async *settled(pause) {
      for (let last: Statement['values'] = [Number.MIN_SAFE_INTEGER, '']; ; await pause()) {
        const [found = []] = await engine.read([selectSettledAfter(last)]);
        yield found.map((row) => ({ record: readRecord(row), postedNanos: Number(row['posted']) }));
        if (found.length < recordsPerRead) return;
        const end = found.at(-1);
        last = [end?.['created_at'] ?? 0, end?.['request_id'] ?? ''];
      }
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
const auditedColumns = `accounts.key_id AS key_id, balance, held, spent, postings,
  (SELECT ledger.number FROM ledger WHERE ledger.key_id = accounts.key_id ORDER BY ledger.number DESC LIMIT 1) AS last_number,
  ledger_folds.number AS folded, credits, charges,
  (SELECT sum(delta) FROM folded_credits WHERE folded_credits.key_id = ledger_folds.key_id) AS kept_credits
  FROM accounts LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id`;

/** The next page of accounts. */
function selectAccountsAfter(keyId: string): Statement {
  return {
    sql: `SELECT ${auditedColumns} WHERE accounts.key_id > ? ORDER BY accounts.key_id LIMIT ?`,
    values: [keyId, accountsPerRead],
  };
}

function selectAccounts(keyIds: readonly string[]): Statement {
  return {
    sql: `SELECT ${auditedColumns} WHERE accounts.key_id IN (${placesOf(keyIds)})`,
    values: keyIds,
  };
}

function selectFolds(keyIds: readonly string[]): Statement {
  return {
    sql: `SELECT key_id, number FROM ledger_folds WHERE key_id IN (${placesOf(keyIds)})`,
    values: keyIds,
  };
}

/** In the order in which they were made, in which they also lie on the disk: by their ids every row would be a jump. */
function selectSettledAfter(last: Statement['values']): Statement {
  return {
    sql: `SELECT records.*, coalesce(-delta, 0) AS posted FROM records
          LEFT JOIN ledger ON ledger.request_id = records.request_id
          WHERE (records.created_at, records.request_id) > (?, ?)
          ORDER BY records.created_at, records.request_id LIMIT ?`,
    values: [...last, recordsPerRead],
  };
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
  return { keyId: String(row['key_id']), folded, lastNumber: Number(row['last_number'] ?? folded) };
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
    foldedCreditNanos: credits,
    keptCreditNanos: Number(row['kept_credits'] ?? 0),
  };
}
