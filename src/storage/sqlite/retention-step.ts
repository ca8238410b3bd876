import type { Migration } from '../migration.ts';

/** What is left of records and postings that were removed. */
export const retentionStep: Migration = {
  number: 15,
  name: 'the end of old records, and the folding of their postings',
  statements: [
    `CREATE TABLE ledger_folds (
       key_id TEXT PRIMARY KEY,
       number BIGINT NOT NULL CHECK (number > 0),
       credits BIGINT NOT NULL,
       charges BIGINT NOT NULL
     ) WITHOUT ROWID`,
    // Credits are kept one by one: their references must be refused for ever, and there are few of them.
    `CREATE TABLE folded_credits (
       key_id TEXT NOT NULL,
       number BIGINT NOT NULL,
       created_at BIGINT NOT NULL,
       delta BIGINT NOT NULL,
       reference TEXT,
       posting TEXT NOT NULL,
       PRIMARY KEY (key_id, number)
     ) WITHOUT ROWID`,
    `CREATE UNIQUE INDEX folded_credits_by_reference ON folded_credits (key_id, reference) WHERE reference IS NOT NULL`,
    `CREATE TABLE record_removals (id INTEGER PRIMARY KEY CHECK (id = 1), removed_before BIGINT NOT NULL)`,
    `DROP TRIGGER ledger_is_never_shortened`,
    `CREATE TRIGGER ledger_is_shortened_by_folds_alone BEFORE DELETE ON ledger
       WHEN OLD.number > coalesce((SELECT number FROM ledger_folds WHERE key_id = OLD.key_id), 0)
       BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END`,
  ],
};
