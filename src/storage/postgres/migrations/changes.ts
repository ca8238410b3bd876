import type { Migration } from '../../migration.ts';

/**
 * What nodes have to know of each other beside the requests: changed keys, cancellations, their names, and which of them
 * does the work that one node does for all. Triggers count the changes of keys, so that no statement can forget it; none
 * of them runs for a request. Whether a key has a balance is in its account, and counts as a change of the key.
 */
export const changes: Migration = {
  number: 4,
  name: 'changes that other nodes have to know',
  statements: [
    `CREATE TABLE key_changes (count BIGINT NOT NULL)`,
    `INSERT INTO key_changes VALUES (0)`,
    `CREATE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN UPDATE key_changes SET count = count + 1; RETURN NULL; END $$`,
    `CREATE TRIGGER keys_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_keys
       EXECUTE FUNCTION count_key_change()`,
    `CREATE TRIGGER secrets_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON old_secrets
       EXECUTE FUNCTION count_key_change()`,
    `CREATE TRIGGER balance_begun AFTER UPDATE OF balance ON accounts FOR EACH ROW
       WHEN ((OLD.balance IS NULL) <> (NEW.balance IS NULL)) EXECUTE FUNCTION count_key_change()`,
    `CREATE TABLE cancellations (
       request_id TEXT COLLATE "C" PRIMARY KEY,
       owner TEXT COLLATE "C" NOT NULL
     )`,
    `CREATE INDEX cancellations_by_owner ON cancellations (owner)`,
    `CREATE TABLE duties (
       name TEXT COLLATE "C" PRIMARY KEY,
       owner TEXT COLLATE "C" NOT NULL
     )`,
    `ALTER TABLE owners ADD COLUMN name TEXT NOT NULL DEFAULT ''`,
  ],
};
