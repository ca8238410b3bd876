import type { AuditedAccount, LedgerAudit } from '../../domain/ports/ledger-audit.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { noRows, sumLedgers } from './ledger-sums.ts';
import type { LedgerSum } from './ledger-sums.ts';
import { readRecord } from '../records/record-pages.ts';

/** How many accounts and records are read at once: each takes a few milliseconds. */
const accountsPerRead = 500;
const recordsPerRead = 200;

const openHolds: Statement = { sql: 'SELECT key_id, hold FROM open_requests', values: [] };

/** Reads the rows behind the accounts for their verification, a page at a time and never in front of a commit. */
export function createLedgerAudit(engine: Pick<Engine, 'read'>): LedgerAudit {
  return {
    async *audit(pause) {
      for (let last = ''; ; await pause()) {
        // One read is one snapshot: the accounts of a page, the ends of their ledgers and what is open belong together.
        const [open = [], rows = []] = await engine.read([openHolds, selectAccountsAfter(last)]);
        const holds = sumHolds(open);
        const accounts = rows.map(readAccount);
        const sums = await sumLedgers(engine, accounts, pause);
        yield accounts.map((account) => ({
          ...account,
          ...(sums.get(account.keyId) ?? noRows),
          openHoldNanos: holds.get(account.keyId) ?? 0,
        }));
        if (accounts.length < accountsPerRead) return;
        last = accounts.at(-1)?.keyId ?? '';
      }
    },
    async *settled(pause) {
      for (let last: Statement['values'] = [Number.MIN_SAFE_INTEGER, '']; ; await pause()) {
        const [found = []] = await engine.read([selectSettledAfter(last)]);
        yield found.map((row) => ({ record: readRecord(row), postedNanos: Number(row['posted']) }));
        if (found.length < recordsPerRead) return;
        const end = found.at(-1);
        last = [end?.['created_at'] ?? 0, end?.['request_id'] ?? ''];
      }
    },
  };
}

/** The next page of accounts. A commit adds to an account's postings and to its ledger at once. */
function selectAccountsAfter(keyId: string): Statement {
  return {
    sql: `SELECT key_id, balance, held, spent, postings,
            (SELECT number FROM ledger WHERE ledger.key_id = accounts.key_id ORDER BY number DESC LIMIT 1) AS last_number
          FROM accounts WHERE key_id > ? ORDER BY key_id LIMIT ?`,
    values: [keyId, accountsPerRead],
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

/** An account of a page, without what is added up for it. */
function readAccount(row: Row): Omit<AuditedAccount, keyof LedgerSum | 'openHoldNanos'> {
  return {
    keyId: String(row['key_id']),
    balanceNanos: row['balance'] === null ? null : Number(row['balance']),
    heldNanos: Number(row['held']),
    spentNanos: Number(row['spent']),
    postings: Number(row['postings']),
    lastNumber: Number(row['last_number'] ?? 0),
  };
}
