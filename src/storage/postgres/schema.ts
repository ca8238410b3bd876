import type { Migration } from '../migration.ts';
import { auditLines, countAuditLines, isUntoldRemoval } from '../schema/audit.ts';
import { claimOwners, claimRows } from '../schema/claims.ts';
import { historyIntervals } from '../schema/history.ts';
import { tables } from '../schema/tables.ts';
import { addBudgetLevel, addLowBalance, countRecord, markOf } from '../schema/triggers.ts';
import { filled, id, sql } from '../schema/parts.ts';
import { failureIndex, views } from '../schema/requests.ts';

const functions = sql`
-- As SQLite has it. A function of SQL alone is written into the statements that call it.
CREATE FUNCTION unhex(TEXT) RETURNS BYTEA LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT decode($1, 'hex') $$;
CREATE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE AS
  $$ SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) $$;
-- A transaction with a number below the oldest one has ended, and what begins later sees what it did.
CREATE FUNCTION transaction_number() RETURNS BIGINT LANGUAGE sql VOLATILE AS
  $$ SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) $$;
CREATE FUNCTION oldest_transaction() RETURNS BIGINT LANGUAGE sql VOLATILE AS
  $$ SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) $$;
`;

/** A further step. */
const instr = sql`
-- As SQLite has it.
CREATE FUNCTION instr(TEXT, TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT strpos($1, $2) $$;
`;

const partitions = sql`
-- Partitions of months begin with the month, in UTC, in which the table is made, as the creation of each reads the whole
-- default partition. Records that come from another database are earlier.
DO $$ BEGIN EXECUTE format('CREATE TABLE records_earlier PARTITION OF record_rows FOR VALUES FROM (MINVALUE) TO (%L)',
  CAST(extract(epoch FROM date_trunc('month', now(), 'UTC')) * 1000 AS BIGINT));
END $$;
CREATE TABLE records_default PARTITION OF record_rows DEFAULT;
`;

/** What processes that share a database have to know of each other. */
const shared = sql`
-- Names the database, so that what is kept outside of it is not taken for that of another one.
CREATE TABLE database_id (id TEXT NOT NULL);
INSERT INTO database_id VALUES (left(replace(CAST(gen_random_uuid() AS TEXT), '-', ''), 12));

-- How often keys were changed: one row.
CREATE TABLE key_changes (count BIGINT NOT NULL);
INSERT INTO key_changes VALUES (0);

-- Requests that their process has to stop.
CREATE TABLE cancellations (request_id ${id} PRIMARY KEY, owner ${id} NOT NULL);
CREATE INDEX cancellations_by_owner ON cancellations (owner);

-- Which process does what one of them does for all.
CREATE TABLE duties (name ${id} PRIMARY KEY, owner ${id} NOT NULL);

-- How many rows a key has in the next tables. Its row here is locked before those.
CREATE TABLE key_limits (
  key_id ${id} PRIMARY KEY,
  running BIGINT NOT NULL DEFAULT 0, waiting BIGINT NOT NULL DEFAULT 0, starts BIGINT NOT NULL DEFAULT 0,
  last_start_at BIGINT NOT NULL DEFAULT 0, last_ticket BIGINT NOT NULL DEFAULT 0
)${filled(50)};
CREATE TABLE slots (request_id ${id} PRIMARY KEY, key_id ${id} NOT NULL, owner ${id} NOT NULL)${filled(50)};
CREATE INDEX slots_by_owner ON slots (owner);
CREATE TABLE starts (key_id ${id} NOT NULL, at BIGINT NOT NULL);
CREATE INDEX starts_by_key ON starts (key_id, at);
CREATE TABLE waiting_requests (
  key_id ${id} NOT NULL,
  ticket BIGINT NOT NULL, -- their order
  request_id ${id} NOT NULL UNIQUE,
  owner ${id} NOT NULL,
  concurrency BIGINT NOT NULL, requests_per_minute BIGINT NOT NULL, -- the limits in force for it
  PRIMARY KEY (key_id, ticket)
);
CREATE INDEX waiting_requests_by_owner ON waiting_requests (owner);

-- What became of a request that wants a slot, with what is left of the limits of its key.
CREATE TYPE limit_decision AS (verdict TEXT, in_flight BIGINT, remaining_starts BIGINT, reset_ms BIGINT);
-- The same of a request that has waited, until its process has read it.
CREATE TABLE ended_waits (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id ${id} NOT NULL UNIQUE,
  owner ${id} NOT NULL,
  verdict TEXT NOT NULL, in_flight BIGINT NOT NULL, remaining_starts BIGINT NOT NULL, reset_ms BIGINT NOT NULL
);
CREATE INDEX ended_waits_by_owner ON ended_waits (owner);

-- The quotas of processes in the limits of upstreams.
CREATE TABLE limit_quotas (
  upstream ${id} NOT NULL, limit_name ${id} NOT NULL, owner ${id} NOT NULL,
  turn BIGINT NOT NULL, -- the number of the call that wrote it: one that was overtaken changes nothing
  most BIGINT NOT NULL, -- the limit, as its process knows it
  quota BIGINT NOT NULL,
  needs BIGINT NOT NULL, -- what it has requests for
  wants BIGINT NOT NULL, -- its needs, and what it expects of the next seconds
  lost_at BIGINT, -- when its process was found to have ended
  PRIMARY KEY (upstream, limit_name, owner)
)${filled(50)};
`;

const triggers = sql`
-- Changes of keys are counted by triggers, so that no statement can forget it. None of them runs for a request. Whether a key
-- has a balance is in its account, and counts as a change of the key.
CREATE FUNCTION count_key_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN UPDATE key_changes SET count = count + 1; RETURN NULL; END $$;
CREATE TRIGGER keys_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_keys
  EXECUTE FUNCTION count_key_change();
CREATE TRIGGER secrets_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON old_secrets
  EXECUTE FUNCTION count_key_change();
CREATE TRIGGER balance_begun AFTER UPDATE OF balance ON accounts FOR EACH ROW
  WHEN ((OLD.balance IS NULL) <> (NEW.balance IS NULL)) EXECUTE FUNCTION count_key_change();

-- The ledger, its seals and roots only grow, but for rows that are folded.
CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER ledger_is_append_only BEFORE UPDATE OR TRUNCATE ON ledger_rows
  EXECUTE FUNCTION refuse_ledger_change();
CREATE FUNCTION refuse_unfolded_deletion() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF OLD.number > coalesce((SELECT number FROM ledger_folds WHERE key_id = OLD.key_id), 0) THEN
      RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN OLD;
  END $$;
CREATE TRIGGER ledger_is_shortened_by_folds_alone BEFORE DELETE ON ledger_rows
  FOR EACH ROW EXECUTE FUNCTION refuse_unfolded_deletion();
CREATE FUNCTION refuse_charge_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a settled record is never changed'; END $$;
CREATE TRIGGER charge_is_never_changed BEFORE UPDATE ON record_rows
  FOR EACH ROW WHEN (OLD.settled_ms IS NOT NULL) EXECUTE FUNCTION refuse_charge_change();
CREATE FUNCTION refuse_charge_loss() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM ledger_rows JOIN accounts ON accounts.key_id = ledger_rows.key_id
      WHERE accounts.number = OLD.account AND ledger_rows.number = OLD.charge_number) THEN
      RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN OLD;
  END $$;
CREATE TRIGGER charge_is_kept_without_its_record BEFORE DELETE ON record_rows
  FOR EACH ROW WHEN (OLD.charge_number IS NOT NULL) EXECUTE FUNCTION refuse_charge_loss();
-- Of partitions, too, which have no triggers of statements but their own: src/storage/postgres/partitions.ts makes the others.
CREATE TRIGGER records_are_not_truncated BEFORE TRUNCATE ON record_rows EXECUTE FUNCTION refuse_ledger_change();
CREATE TRIGGER records_are_not_truncated BEFORE TRUNCATE ON records_earlier EXECUTE FUNCTION refuse_ledger_change();
CREATE TRIGGER records_are_not_truncated BEFORE TRUNCATE ON records_default EXECUTE FUNCTION refuse_ledger_change();
-- A kind is part of every record that has it.
CREATE FUNCTION refuse_kind_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a kind of records is never changed or removed'; END $$;
CREATE TRIGGER kind_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON record_kinds
  EXECUTE FUNCTION refuse_kind_change();
CREATE FUNCTION refuse_seal_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;
CREATE TRIGGER ledger_seals_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_seals
  EXECUTE FUNCTION refuse_seal_change();
CREATE TRIGGER ledger_roots_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_roots
  EXECUTE FUNCTION refuse_seal_change();
-- What is folded could not be hashed any more, and no statement could begin behind it.
CREATE FUNCTION refuse_unsealed_fold() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF EXISTS (SELECT 1 FROM ledger_rows WHERE key_id = NEW.key_id AND number <= NEW.number)
      AND NOT EXISTS (SELECT 1 FROM ledger_seals WHERE key_id = NEW.key_id AND number = NEW.number) THEN
      RAISE EXCEPTION 'the postings of a fold are not sealed';
    END IF;
    RETURN NEW;
  END $$;
CREATE TRIGGER ledger_folds_are_sealed BEFORE INSERT OR UPDATE ON ledger_folds
  FOR EACH ROW EXECUTE FUNCTION refuse_unsealed_fold();

-- Whatever writes a record is counted in the same transaction. The record's account is locked by then, so no other settlement
-- waits for these rows. The row of a rolled day is shared, and so it is only locked where it says something else, and behind
-- all other rows of a settlement but those of its own account and request.
CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF TG_OP = 'UPDATE' THEN ${countRecord('OLD', '-')} END IF;
    ${countRecord('NEW', '')}
    RETURN NULL;
  END $$;
CREATE TRIGGER usage_of_records AFTER INSERT OR UPDATE ON record_rows FOR EACH ROW EXECUTE FUNCTION count_usage();

CREATE FUNCTION give_mark() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN NEW.low_mark := ${markOf('NEW.key_id')}; RETURN NEW; END $$;
CREATE TRIGGER account_gets_mark BEFORE INSERT ON accounts FOR EACH ROW
  WHEN (NEW.low_mark IS NULL) EXECUTE FUNCTION give_mark();
CREATE FUNCTION change_mark() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.id')} WHERE key_id = NEW.id; RETURN NULL; END $$;
CREATE TRIGGER mark_of_key_changed AFTER UPDATE OF low_balance ON api_keys FOR EACH ROW
  WHEN (OLD.low_balance IS DISTINCT FROM NEW.low_balance) EXECUTE FUNCTION change_mark();

-- In the unit that charges, so that neither a kill nor a crash can part the crossing and its event. What is free and held
-- together falls with charges alone: no other change of an account has to be compared.
CREATE FUNCTION note_low_balance() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN ${addLowBalance} RETURN NULL; END $$;
CREATE TRIGGER balance_fell AFTER UPDATE OF spent ON accounts FOR EACH ROW
  WHEN (OLD.balance + OLD.held >= NEW.low_mark AND NEW.balance + NEW.held < NEW.low_mark)
  EXECUTE FUNCTION note_low_balance();
-- A budget's level rises within a period, and begins anew with the next one.
CREATE FUNCTION note_budget_level() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN ${addBudgetLevel} RETURN NULL; END $$;
CREATE TRIGGER budget_reached_level_by_insert AFTER INSERT ON budgets FOR EACH ROW
  WHEN (NEW.level > 0) EXECUTE FUNCTION note_budget_level();
CREATE TRIGGER budget_reached_level_by_update AFTER UPDATE OF level ON budgets FOR EACH ROW
  WHEN (NEW.level > 0 AND (NEW.level > OLD.level OR NEW.period_start > OLD.period_start))
  EXECUTE FUNCTION note_budget_level();
`;

const audit = sql`${auditLines}
-- The audit only grows, but for lines that are old.
CREATE FUNCTION count_audit_line() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN ${countAuditLines('SELECT 1, max(number) FROM added HAVING count(*) > 0')} RETURN NULL; END $$;
-- Once for a statement: in a transaction that copies a database, each change of the row would pass all the former ones.
CREATE TRIGGER audit_line_is_counted AFTER INSERT ON audit_lines
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_audit_line();
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$;
CREATE TRIGGER audit_line_is_never_changed BEFORE UPDATE OR TRUNCATE ON audit_lines
  EXECUTE FUNCTION refuse_audit_change();
CREATE FUNCTION refuse_young_removal() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF OLD.number > coalesce((SELECT removed FROM audit_chain WHERE id = 1), 0) THEN
      RAISE EXCEPTION 'the audit is append-only';
    END IF;
    RETURN OLD;
  END $$;
CREATE TRIGGER audit_is_shortened_by_age_alone BEFORE DELETE ON audit_lines
  FOR EACH ROW EXECUTE FUNCTION refuse_young_removal();
CREATE FUNCTION refuse_untold_removal() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF ${isUntoldRemoval} THEN
      RAISE EXCEPTION 'the removed lines are not sealed, or no line says that they are removed';
    END IF;
    RETURN NEW;
  END $$;
CREATE TRIGGER audit_removals_are_told BEFORE UPDATE OF removed ON audit_chain
  FOR EACH ROW EXECUTE FUNCTION refuse_untold_removal();
`;

/**
 * The tables of slots change with every request, and are about the running moment alone: without them in the write-ahead log
 * a request writes less than half of it. A crash of the server empties all of them, and a standby has none of their rows; they
 * are made anew from the rows of requests (`makeKey`), and by the nodes (`restoreSlots`).
 */
const unlogged = ['key_limits', 'slots', 'starts', 'waiting_requests', 'ended_waits']
  .map((table) => `ALTER TABLE ${table} SET UNLOGGED;`)
  .join('\n');

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: 'the first tables',
    sql: sql`${functions}${tables}${partitions}${views}${shared}${triggers}`('postgres'),
  },
  {
    number: 2,
    name: 'slots outside of the write-ahead log',
    // An earlier version counts the slots that it finds: none after a crash.
    runsWith: 1,
    sql: unlogged,
  },
  {
    number: 3,
    name: 'claims of requests',
    // An earlier version knows of no claims: a later one frees those of processes that have ended.
    runsWith: 1,
    sql: claimRows('postgres'),
  },
  {
    number: 4,
    name: 'owners of ended claims',
    // It runs with no earlier version: one with three steps takes each claim that has an owner for one that runs, and would
    // free it, with its charge, once the lease of that owner ends.
    sql: claimOwners('postgres'),
  },
  {
    number: 5,
    name: 'history of the processes',
    // An earlier version writes none: it is missing in the sums of the others.
    runsWith: 4,
    sql: historyIntervals('postgres'),
  },
  {
    number: 6,
    name: 'failures of requests',
    // An earlier version has no use for the index, and it is kept all the same.
    runsWith: 4,
    sql: sql`${failureIndex}${instr}`('postgres'),
  },
  {
    number: 7,
    name: 'the audit',
    // What an earlier version changes leaves no lines.
    runsWith: 4,
    sql: audit('postgres'),
  },
];
