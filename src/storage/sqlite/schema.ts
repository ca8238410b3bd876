import type { DatabaseSync } from 'node:sqlite';
import { createMigrationTable, findPending } from '../migration.ts';
import type { MadeMigration, Migration, PendingMigration } from '../migration.ts';
import { auditLines, countAuditLines, isUntoldRemoval } from '../schema/audit.ts';
import { claimOwners, claimRows } from '../schema/claims.ts';
import { historyIntervals } from '../schema/history.ts';
import { tables } from '../schema/tables.ts';
import { addBudgetLevel, addLowBalance, countRecord, markOf } from '../schema/triggers.ts';
import { sql } from '../schema/parts.ts';
import { failureIndex, views } from '../schema/requests.ts';

const refuse = (reason: string): string => `BEGIN SELECT RAISE(ABORT, '${reason}'); END`;

/** That the postings of a fold are not sealed. */
const isUnsealed = `EXISTS (SELECT 1 FROM ledger_rows WHERE key_id = NEW.key_id AND number <= NEW.number)
    AND NOT EXISTS (SELECT 1 FROM ledger_seals WHERE key_id = NEW.key_id AND number = NEW.number)`;

const triggers = sql`
-- The ledger, its seals and roots only grow, but for rows that are folded.
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger_rows ${refuse('the ledger is append-only')};
CREATE TRIGGER ledger_is_shortened_by_folds_alone BEFORE DELETE ON ledger_rows
  WHEN OLD.number > coalesce((SELECT number FROM ledger_folds WHERE key_id = OLD.key_id), 0)
  ${refuse('the ledger is append-only')};
-- A kind is part of every record that has it.
CREATE TRIGGER kind_is_never_changed BEFORE UPDATE ON record_kinds ${refuse('a kind of records is never changed')};
CREATE TRIGGER kind_is_never_removed BEFORE DELETE ON record_kinds ${refuse('a kind of records is never removed')};
CREATE TRIGGER charge_is_never_changed BEFORE UPDATE ON record_rows
  WHEN OLD.settled_ms IS NOT NULL
  ${refuse('a settled record is never changed')};
CREATE TRIGGER charge_is_kept_without_its_record BEFORE DELETE ON record_rows
  WHEN OLD.charge_number IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger_rows JOIN accounts ON accounts.key_id = ledger_rows.key_id
    WHERE accounts.number = OLD.account AND ledger_rows.number = OLD.charge_number)
  ${refuse('the ledger is append-only')};
CREATE TRIGGER ledger_seals_refuses_update BEFORE UPDATE ON ledger_seals ${refuse('ledger_seals is append-only')};
CREATE TRIGGER ledger_seals_refuses_delete BEFORE DELETE ON ledger_seals ${refuse('ledger_seals is append-only')};
CREATE TRIGGER ledger_roots_refuses_update BEFORE UPDATE ON ledger_roots ${refuse('ledger_roots is append-only')};
CREATE TRIGGER ledger_roots_refuses_delete BEFORE DELETE ON ledger_roots ${refuse('ledger_roots is append-only')};
-- What is folded could not be hashed any more, and no statement could begin behind it.
CREATE TRIGGER ledger_folds_are_sealed_on_insert BEFORE INSERT ON ledger_folds
  WHEN ${isUnsealed}
  ${refuse('the postings of a fold are not sealed')};
CREATE TRIGGER ledger_folds_are_sealed_on_update BEFORE UPDATE ON ledger_folds
  WHEN ${isUnsealed}
  ${refuse('the postings of a fold are not sealed')};

-- Whatever writes a record is counted in the same transaction.
CREATE TRIGGER usage_of_new_record AFTER INSERT ON record_rows BEGIN ${countRecord('NEW', '')} END;
CREATE TRIGGER usage_of_changed_record AFTER UPDATE ON record_rows
  BEGIN ${countRecord('OLD', '-')} ${countRecord('NEW', '')} END;

CREATE TRIGGER account_gets_mark AFTER INSERT ON accounts WHEN NEW.low_mark IS NULL
  BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.key_id')} WHERE key_id = NEW.key_id; END;
CREATE TRIGGER mark_of_key_changed AFTER UPDATE OF low_balance ON api_keys WHEN OLD.low_balance IS NOT NEW.low_balance
  BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.id')} WHERE key_id = NEW.id; END;

-- In the unit that charges, so that neither a kill nor a power failure can part the crossing and its event. What is free and
-- held together falls with charges alone: no other change of an account has to be compared.
CREATE TRIGGER balance_fell AFTER UPDATE OF spent ON accounts
  WHEN OLD.balance + OLD.held >= NEW.low_mark AND NEW.balance + NEW.held < NEW.low_mark
  BEGIN ${addLowBalance} END;
-- A budget's level rises within a period, and begins anew with the next one.
CREATE TRIGGER budget_reached_level_by_insert AFTER INSERT ON budgets WHEN NEW.level > 0 BEGIN ${addBudgetLevel} END;
CREATE TRIGGER budget_reached_level_by_update AFTER UPDATE OF level ON budgets
  WHEN NEW.level > 0 AND (NEW.level > OLD.level OR NEW.period_start > OLD.period_start)
  BEGIN ${addBudgetLevel} END;
`;

const audit = sql`${auditLines}
-- The audit only grows, but for lines that are old.
CREATE TRIGGER audit_line_is_counted AFTER INSERT ON audit_lines BEGIN ${countAuditLines('VALUES (1, NEW.number)')} END;
-- A line that replaces another one would be neither an update nor a deletion.
CREATE TRIGGER audit_line_is_the_next BEFORE INSERT ON audit_lines
  WHEN NEW.number <> coalesce((SELECT last FROM audit_chain WHERE id = 1), 0) + 1 ${refuse('the audit is append-only')};
CREATE TRIGGER audit_line_is_never_changed BEFORE UPDATE ON audit_lines ${refuse('the audit is append-only')};
CREATE TRIGGER audit_is_shortened_by_age_alone BEFORE DELETE ON audit_lines
  WHEN OLD.number > coalesce((SELECT removed FROM audit_chain WHERE id = 1), 0)
  ${refuse('the audit is append-only')};
CREATE TRIGGER audit_removals_are_told BEFORE UPDATE OF removed ON audit_chain WHEN ${isUntoldRemoval}
  ${refuse('the removed lines are not sealed, or no line says that they are removed')};
`;

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: 'the first tables',
    sql: sql`${tables}${views}${triggers}`('sqlite'),
  },
  { number: 2, name: 'claims of requests', sql: claimRows('sqlite') },
  { number: 3, name: 'owners of ended claims', sql: claimOwners('sqlite') },
  { number: 4, name: 'history of the processes', sql: historyIntervals('sqlite') },
  { number: 5, name: 'failures of requests', sql: failureIndex('sqlite') },
  { number: 6, name: 'the audit', sql: audit('sqlite') },
];

/** Brings the schema up to date. A database with other steps than this version has is refused, and stays as it is. */
export function migrate(database: DatabaseSync, steps: readonly Migration[] = migrations): void {
  for (const step of findPending(steps, madeSteps(database))) apply(database, step);
}

/** The steps that a database has: a file is used by one version at a time, so each needs a version that knows it. */
export function madeSteps(database: DatabaseSync): ReadonlyMap<number, MadeMigration> {
  const [table] = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'migrations'`).all();
  if (table === undefined) return new Map();
  const rows = database.prepare('SELECT number, checksum FROM migrations').all();
  return new Map(
    rows.map((row) => {
      const number = Number(row['number']);
      return [number, { checksum: String(row['checksum']), runsWith: number }];
    }),
  );
}

function apply(database: DatabaseSync, step: PendingMigration): void {
  database.exec(`BEGIN IMMEDIATE; ${createMigrationTable()}; ${step.sql}`);
  database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(step.number, step.name, step.checksum);
  database.exec('COMMIT');
}
