import type { Migration } from '../migration.ts';
import { groupsStep } from './groups-step.ts';
import { outboxStep } from './outbox-step.ts';
import { numberedLedgerStep } from './numbered-ledger-step.ts';
import { budgetsStep } from './budgets-step.ts';
import { retentionStep } from './retention-step.ts';
import { usageStep } from './usage-step.ts';
import { tokenUseStep } from './token-use-step.ts';
import { statementsStep } from './statements-step.ts';
import { weightStep } from './weight-step.ts';
import { refusalsStep } from './refusals-step.ts';
import { usageGroupsStep } from './usage-groups-step.ts';

/** Every step, in order. */
export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: 'keys and consumption records',
    statements: [
      `CREATE TABLE api_keys (
         id TEXT PRIMARY KEY,
         hash TEXT NOT NULL UNIQUE,
         name TEXT NOT NULL,
         created_at BIGINT NOT NULL,
         concurrency INTEGER,
         requests_per_minute INTEGER
       )`,
      `CREATE INDEX api_keys_by_creation ON api_keys (created_at, id)`,
      `CREATE TABLE records (
         request_id TEXT PRIMARY KEY,
         key_id TEXT NOT NULL REFERENCES api_keys (id),
         created_at BIGINT NOT NULL,
         protocol TEXT NOT NULL,
         mode TEXT NOT NULL,
         model TEXT NOT NULL,
         upstream TEXT NOT NULL,
         queued_ms INTEGER NOT NULL,
         outcome TEXT,
         status INTEGER,
         input_tokens BIGINT,
         cached_input_tokens BIGINT,
         output_tokens BIGINT,
         reasoning_tokens BIGINT,
         usage_source TEXT,
         first_byte_ms INTEGER,
         total_ms INTEGER
       )`,
      `CREATE INDEX records_by_key ON records (key_id, created_at, request_id)`,
      `CREATE INDEX records_pending ON records (request_id) WHERE outcome IS NULL`,
    ],
  },
  {
    number: 2,
    name: 'how the requests of a key are read',
    statements: [`ALTER TABLE api_keys ADD COLUMN compatibility TEXT NOT NULL DEFAULT '{}'`],
  },
  {
    number: 3,
    name: 'balances, holds and the ledger',
    statements: [
      `CREATE TABLE accounts (
         key_id TEXT PRIMARY KEY REFERENCES api_keys (id),
         balance BIGINT,
         held BIGINT NOT NULL DEFAULT 0,
         spent BIGINT NOT NULL DEFAULT 0,
         last_request TEXT,
         last_hold BIGINT
       )`,
      `INSERT INTO accounts (key_id) SELECT id FROM api_keys`,
      `ALTER TABLE records ADD COLUMN price_input BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN price_cached_input BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN price_output BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN hold BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN charge BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN settlement TEXT`,
      `CREATE TABLE ledger (
         seq INTEGER PRIMARY KEY AUTOINCREMENT,
         key_id TEXT NOT NULL REFERENCES accounts (key_id),
         created_at BIGINT NOT NULL,
         kind TEXT NOT NULL CHECK (kind IN ('credit', 'charge')),
         delta BIGINT NOT NULL,
         request_id TEXT UNIQUE REFERENCES records (request_id),
         reference TEXT,
         posting TEXT NOT NULL,
         UNIQUE (key_id, reference)
       )`,
      `CREATE INDEX ledger_by_key ON ledger (key_id, seq)`,
      `CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
         BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END`,
      `CREATE TRIGGER ledger_is_never_shortened BEFORE DELETE ON ledger
         BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END`,
    ],
  },
  {
    number: 4,
    name: 'the life of a key, and pages of records',
    statements: [
      `ALTER TABLE api_keys ADD COLUMN models TEXT`,
      `ALTER TABLE api_keys ADD COLUMN expires_at BIGINT`,
      `ALTER TABLE api_keys ADD COLUMN revoked_at BIGINT`,
      `CREATE TABLE old_secrets (
         hash TEXT PRIMARY KEY,
         key_id TEXT NOT NULL REFERENCES api_keys (id),
         valid_until BIGINT NOT NULL
       )`,
      `CREATE INDEX records_by_time ON records (created_at, request_id)`,
      `CREATE INDEX records_by_model ON records (model, created_at, request_id)`,
    ],
  },
  {
    number: 5,
    name: 'a wait for a slot per key, and the attempts of a request',
    statements: [
      `ALTER TABLE api_keys ADD COLUMN queue_wait_ms INTEGER`,
      `ALTER TABLE records ADD COLUMN attempts TEXT NOT NULL DEFAULT '[]'`,
    ],
  },
  {
    number: 6,
    name: 'pages of the records of one key and one model',
    statements: [
      // Of two indexes of the same estimated cost, SQLite takes the older one: were that the index by model, a page of one
      // key and one model would read the records of all keys.
      `DROP INDEX records_by_model`,
      `CREATE INDEX records_by_key_and_model ON records (key_id, model, created_at, request_id)`,
      `CREATE INDEX records_by_model ON records (model, created_at, request_id)`,
    ],
  },
  {
    number: 7,
    name: 'cache writes, prices per request, what an account could not take, and the secrets of a key',
    statements: [
      `ALTER TABLE records ADD COLUMN cache_write_tokens BIGINT`,
      `ALTER TABLE records ADD COLUMN price_cache_write BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN price_request BIGINT NOT NULL DEFAULT 0`,
      `ALTER TABLE records ADD COLUMN unbooked BIGINT NOT NULL DEFAULT 0`,
      `CREATE INDEX old_secrets_by_key ON old_secrets (key_id)`,
    ],
  },
  {
    number: 8,
    name: 'owners of open records, and the number of postings of an account',
    statements: [
      `CREATE TABLE owners (id TEXT PRIMARY KEY, renewals BIGINT NOT NULL DEFAULT 0)`,
      `ALTER TABLE records ADD COLUMN owner TEXT`,
      `ALTER TABLE records ADD COLUMN late INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE accounts ADD COLUMN postings BIGINT NOT NULL DEFAULT 0`,
      `UPDATE accounts SET postings = (SELECT count(*) FROM ledger WHERE ledger.key_id = accounts.key_id)`,
    ],
  },
  {
    number: 9,
    name: 'keys that the config declares, by their names',
    statements: [
      `ALTER TABLE api_keys ADD COLUMN declared INTEGER NOT NULL DEFAULT 0`,
      `CREATE UNIQUE INDEX api_keys_declared ON api_keys (name) WHERE declared = 1`,
    ],
  },
  {
    number: 10,
    name: 'no index of the ledger by key, by which nothing is searched',
    statements: [`DROP INDEX ledger_by_key`],
  },
  {
    number: 11,
    name: 'open requests apart from the records',
    statements: [
      `CREATE TABLE open_requests (
         request_id TEXT PRIMARY KEY,
         key_id TEXT NOT NULL,
         owner TEXT NOT NULL,
         created_at BIGINT NOT NULL,
         protocol TEXT NOT NULL,
         mode TEXT NOT NULL,
         model TEXT NOT NULL,
         upstream TEXT NOT NULL,
         queued_ms INTEGER NOT NULL,
         price_input BIGINT NOT NULL,
         price_cached_input BIGINT NOT NULL,
         price_cache_write BIGINT NOT NULL,
         price_output BIGINT NOT NULL,
         price_request BIGINT NOT NULL,
         hold BIGINT NOT NULL
       ) WITHOUT ROWID`,
      `INSERT INTO open_requests SELECT request_id, key_id, coalesce(owner, ''), created_at, protocol, mode, model, upstream,
         queued_ms, price_input, price_cached_input, price_cache_write, price_output, price_request, hold
       FROM records WHERE outcome IS NULL`,
      `DELETE FROM records WHERE outcome IS NULL`,
      `DROP INDEX records_pending`,
    ],
  },
  {
    number: 12,
    name: 'leases in the time of the database',
    statements: [
      `DROP TABLE owners`,
      `CREATE TABLE owners (id TEXT PRIMARY KEY, since BIGINT NOT NULL, renewed_at BIGINT NOT NULL) WITHOUT ROWID`,
    ],
  },
  numberedLedgerStep,
  {
    number: 14,
    name: 'where keys may be used',
    statements: [`ALTER TABLE api_keys ADD COLUMN allow_from TEXT`],
  },
  retentionStep,
  usageStep,
  tokenUseStep,
  statementsStep,
  budgetsStep,
  outboxStep,
  groupsStep,
  weightStep,
  refusalsStep,
  usageGroupsStep,
];
