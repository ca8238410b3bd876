import type { Migration } from '../migration.ts';

/** Seals and roots over the ledger, and the keys that sign statements. */
export const statementsStep: Migration = {
  number: 18,
  name: 'seals and roots over the ledger, and keys of statements',
  statements: [
    `CREATE TABLE ledger_seals (
       key_id TEXT NOT NULL,
       number BIGINT NOT NULL CHECK (number > 0),
       hash TEXT NOT NULL,
       balance BIGINT NOT NULL,
       PRIMARY KEY (key_id, number)
     ) WITHOUT ROWID`,
    `CREATE TABLE ledger_heads (
       key_id TEXT NOT NULL,
       root BIGINT NOT NULL,
       number BIGINT NOT NULL,
       hash TEXT NOT NULL,
       PRIMARY KEY (key_id, root)
     ) WITHOUT ROWID`,
    `CREATE TABLE ledger_roots (
       number BIGINT PRIMARY KEY,
       created_at BIGINT NOT NULL,
       previous TEXT NOT NULL,
       tree TEXT NOT NULL,
       accounts BIGINT NOT NULL,
       hash TEXT NOT NULL
     ) WITHOUT ROWID`,
    `CREATE TABLE ledger_root_work (id INTEGER PRIMARY KEY CHECK (id = 1), changes BIGINT NOT NULL)`,
    `INSERT INTO ledger_root_work VALUES (1, 0)`,
    `CREATE TABLE statement_keys (
       id TEXT PRIMARY KEY,
       pem TEXT NOT NULL,
       private_pem TEXT,
       created_at BIGINT NOT NULL
     ) WITHOUT ROWID`,
    ...['ledger_seals', 'ledger_roots'].flatMap((table) =>
      ['UPDATE', 'DELETE'].map(
        (change) => `CREATE TRIGGER ${table}_refuses_${change.toLowerCase()} BEFORE ${change} ON ${table}
       BEGIN SELECT RAISE(ABORT, '${table} is append-only'); END`,
      ),
    ),
    // What is folded could not be hashed any more, and no statement could begin behind it.
    ...['INSERT', 'UPDATE'].map(
      (
        change,
      ) => `CREATE TRIGGER ledger_folds_are_sealed_on_${change.toLowerCase()} BEFORE ${change} ON ledger_folds
       WHEN EXISTS (SELECT 1 FROM ledger WHERE key_id = NEW.key_id AND number <= NEW.number)
         AND NOT EXISTS (SELECT 1 FROM ledger_seals WHERE key_id = NEW.key_id AND number = NEW.number)
       BEGIN SELECT RAISE(ABORT, 'the postings of a fold are not sealed'); END`,
    ),
  ],
};
