import type { Migration } from '../../migration.ts';

/**
 * What is left of records and postings that were removed. A version without this step must not start beside it: it would book
 * the reference of a folded credit again, and take a folded ledger for a damaged one.
 */
export const retention: Migration = {
  number: 6,
  name: 'the end of old records, and the folding of their postings',
  statements: [
    `CREATE TABLE ledger_folds (
       key_id TEXT COLLATE "C" PRIMARY KEY,
       number BIGINT NOT NULL CHECK (number > 0),
       credits BIGINT NOT NULL,
       charges BIGINT NOT NULL
     )`,
    // Credits are kept one by one: their references must be refused for ever, and there are few of them.
    `CREATE TABLE folded_credits (
       key_id TEXT COLLATE "C" NOT NULL,
       number BIGINT NOT NULL,
       created_at BIGINT NOT NULL,
       delta BIGINT NOT NULL,
       reference TEXT,
       posting TEXT NOT NULL,
       PRIMARY KEY (key_id, number)
     )`,
    `CREATE UNIQUE INDEX folded_credits_by_reference ON folded_credits (key_id, reference) WHERE reference IS NOT NULL`,
    `CREATE TABLE record_removals (id INTEGER PRIMARY KEY CHECK (id = 1), removed_before BIGINT NOT NULL)`,
    `DROP TRIGGER ledger_is_append_only ON ledger`,
    `CREATE TRIGGER ledger_is_append_only BEFORE UPDATE OR TRUNCATE ON ledger
       EXECUTE FUNCTION refuse_ledger_change()`,
    `CREATE FUNCTION refuse_unfolded_deletion() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN
         IF OLD.number > coalesce((SELECT number FROM ledger_folds WHERE key_id = OLD.key_id), 0) THEN
           RAISE EXCEPTION 'the ledger is append-only';
         END IF;
         RETURN OLD;
       END $$`,
    `CREATE TRIGGER ledger_is_shortened_by_folds_alone BEFORE DELETE ON ledger
       FOR EACH ROW EXECUTE FUNCTION refuse_unfolded_deletion()`,
  ],
};
