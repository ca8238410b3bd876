import type { AuditedAccount, LedgerAudit } from '../domain/ports/ledger-audit.ts';
import type { Engine, Row, Statement } from './engine.ts';
import { readRecord } from './record-pages.ts';

/** How many accounts, rows of the ledger and records are read at once: each takes a few milliseconds. */
const accountsPerRead = 500;
const postingsPerRead = 2_000;
const recordsPerRead = 200;

const openHolds: Statement = { sql: 'SELECT key_id, hold FROM open_requests', values: [] };

/** Reads the rows behind the accounts for their verification, a page at a time and never in front of a commit. */
export function createLedgerAudit(engine: Engine): LedgerAudit {
  return {
    async *audit(pause) {
      const ledger = new LedgerSums();
      let [caughtUp, last] = [true, ''];
      for (;;) {
        // One read is one snapshot: the accounts of a page, the ledger up to now, and what is open belong together.
        const page = caughtUp ? [openHolds, selectAccountsAfter(last)] : [];
        const [postings = [], open = [], accounts = []] = await engine.read([ledger.next(), ...page]);
        const wasCaughtUp = caughtUp;
        caughtUp = ledger.add(postings);
        if (caughtUp && wasCaughtUp) {
          const holds = sumHolds(open);
          yield accounts.map((row) => auditedAccount(row, ledger, holds));
          if (accounts.length < accountsPerRead) return;
          last = String(accounts.at(-1)?.['key_id']);
        }
        await pause();
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

/** What the ledger rows of one account amount to. */
interface LedgerSum {
  ledgerNanos: number;
  chargedNanos: number;
  ledgerRows: number;
}

/**
 * What the ledger says of every account, added up as far as it was read. Numbers of rows may have gaps, and every account
 * has a count of its own; but a row must never appear with a lower number than one that could be read before it.
 */
class LedgerSums {
  readonly #byKey = new Map<string, LedgerSum>();
  #last = 0;

  /** Reads the rows behind those that were added. */
  next(): Statement {
    return {
      sql: 'SELECT seq, key_id, kind, delta FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?',
      values: [this.#last, postingsPerRead],
    };
  }

  /** Adds the rows that `next` read; returns whether they were the last ones there are. */
  add(postings: readonly Row[]): boolean {
    for (const row of postings) {
      this.#last = Number(row['seq']);
      const [keyId, delta] = [String(row['key_id']), Number(row['delta'])];
      const sum = this.of(keyId);
      this.#byKey.set(keyId, sum);
      sum.ledgerRows++;
      sum.ledgerNanos += delta;
      if (row['kind'] === 'charge') sum.chargedNanos -= delta;
    }
    return postings.length < postingsPerRead;
  }

  of(keyId: string): LedgerSum {
    return this.#byKey.get(keyId) ?? { ledgerNanos: 0, chargedNanos: 0, ledgerRows: 0 };
  }
}

function selectAccountsAfter(keyId: string): Statement {
  return {
    sql: 'SELECT key_id, balance, held, spent, postings FROM accounts WHERE key_id > ? ORDER BY key_id LIMIT ?',
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

function auditedAccount(row: Row, ledger: LedgerSums, holds: ReadonlyMap<string, number>): AuditedAccount {
  const keyId = String(row['key_id']);
  return {
    ...ledger.of(keyId),
    keyId,
    balanceNanos: row['balance'] === null ? null : Number(row['balance']),
    heldNanos: Number(row['held']),
    spentNanos: Number(row['spent']),
    postings: Number(row['postings']),
    openHoldNanos: holds.get(keyId) ?? 0,
  };
}
