import type { Migration } from '../../migration.ts';

/**
 * Seals and roots over the ledger, and the keys that sign statements. An earlier version that still runs beside it folds
 * nothing: what is folded could not be hashed any more, and no statement could begin behind it.
 */
export const statements: Migration = {
  number: 9,
  name: 'seals and roots over the ledger, and keys of statements',
  statements: [
    `CREATE TABLE ledger_seals (
       key_id TEXT COLLATE "C" NOT NULL,
       number BIGINT NOT NULL CHECK (number > 0),
       hash TEXT NOT NULL,
       balance BIGINT NOT NULL,
       PRIMARY KEY (key_id, number)
     )`,
    `CREATE TABLE ledger_heads (
       key_id TEXT COLLATE "C" NOT NULL,
       root BIGINT NOT NULL,
       number BIGINT NOT NULL,
       hash TEXT NOT NULL,
       PRIMARY KEY (key_id, root)
     )`,
    `CREATE TABLE ledger_roots (
       number BIGINT PRIMARY KEY,
       created_at BIGINT NOT NULL,
       previous TEXT NOT NULL,
       tree TEXT NOT NULL,
       accounts BIGINT NOT NULL,
       hash TEXT NOT NULL
     )`,
    `CREATE TABLE ledger_root_work (id INTEGER PRIMARY KEY CHECK (id = 1), changes BIGINT NOT NULL)`,
    `INSERT INTO ledger_root_work VALUES (1, 0)`,
    `CREATE TABLE statement_keys (
       id TEXT COLLATE "C" PRIMARY KEY,
       pem TEXT NOT NULL,
       private_pem TEXT,
       created_at BIGINT NOT NULL
     )`,
    `CREATE FUNCTION refuse_seal_change() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$`,
    ...['ledger_seals', 'ledger_roots'].map(
      (table) => `CREATE TRIGGER ${table}_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ${table}
       EXECUTE FUNCTION refuse_seal_change()`,
    ),
    `CREATE FUNCTION refuse_unsealed_fold() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN
         IF EXISTS (SELECT 1 FROM ledger WHERE key_id = NEW.key_id AND number <= NEW.number)
           AND NOT EXISTS (SELECT 1 FROM ledger_seals WHERE key_id = NEW.key_id AND number = NEW.number) THEN
           RAISE EXCEPTION 'the postings of a fold are not sealed';
         END IF;
         RETURN NEW;
       END $$`,
    `CREATE TRIGGER ledger_folds_are_sealed BEFORE INSERT OR UPDATE ON ledger_folds
       FOR EACH ROW EXECUTE FUNCTION refuse_unsealed_fold()`,
  ],
  runsWith: 6,
};
