import type { Migration } from '../migration.ts';

/** The ledger gets its numbers by account. */
export const numberedLedgerStep: Migration = {
  number: 13,
  name: 'the ledger numbered by account',
  statements: [
    // By account, so that an audit of one reads neighbouring rows. Without foreign keys: a ledger some of whose records
    // were deleted by hand could not be carried over.
    `CREATE TABLE numbered_ledger (
         key_id TEXT NOT NULL,
         number BIGINT NOT NULL CHECK (number > 0),
         created_at BIGINT NOT NULL,
         kind TEXT NOT NULL CHECK (kind IN ('credit', 'charge')),
         delta BIGINT NOT NULL,
         request_id TEXT UNIQUE,
         reference TEXT,
         posting TEXT NOT NULL,
         PRIMARY KEY (key_id, number)
       ) WITHOUT ROWID`,
    `INSERT INTO numbered_ledger (key_id, number, created_at, kind, delta, request_id, reference, posting)
       SELECT key_id, row_number() OVER (PARTITION BY key_id ORDER BY seq), created_at, kind, delta, request_id, reference,
         posting
       FROM ledger ORDER BY key_id, seq`,
    `DROP TABLE ledger`,
    `ALTER TABLE numbered_ledger RENAME TO ledger`,
    `CREATE UNIQUE INDEX ledger_by_reference ON ledger (key_id, reference) WHERE reference IS NOT NULL`,
    `CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
         BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END`,
    `CREATE TRIGGER ledger_is_never_shortened BEFORE DELETE ON ledger
         BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END`,
    // Rows that were added by hand have numbers, too: the next posting must not get one of them.
    `UPDATE accounts SET postings = max(postings,
         (SELECT coalesce(max(number), 0) FROM ledger WHERE ledger.key_id = accounts.key_id))`,
  ],
};
