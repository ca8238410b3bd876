import type { Migration } from '../../migration.ts';

/**
 * Keys, accounts, records and the ledger. There are no foreign keys where requests write: each insert would lock its
 * parent's row, and the audit finds what they would. Ids are compared by their bytes, which is the order of their times.
 */
export const books: Migration = {
  number: 1,
  name: 'keys, accounts, records and the ledger',
  statements: [
    `CREATE TABLE api_keys (
       id TEXT COLLATE "C" PRIMARY KEY,
       hash TEXT COLLATE "C" NOT NULL UNIQUE,
       name TEXT NOT NULL,
       created_at BIGINT NOT NULL,
       concurrency INTEGER,
       requests_per_minute INTEGER,
       compatibility TEXT NOT NULL DEFAULT '{}',
       models TEXT,
       expires_at BIGINT,
       revoked_at BIGINT,
       queue_wait_ms INTEGER,
       declared INTEGER NOT NULL DEFAULT 0
     )`,
    `CREATE INDEX api_keys_by_creation ON api_keys (created_at, id)`,
    `CREATE UNIQUE INDEX api_keys_declared ON api_keys (name) WHERE declared = 1`,
    `CREATE TABLE old_secrets (
       hash TEXT COLLATE "C" PRIMARY KEY,
       key_id TEXT COLLATE "C" NOT NULL REFERENCES api_keys (id),
       valid_until BIGINT NOT NULL
     )`,
    `CREATE INDEX old_secrets_by_key ON old_secrets (key_id)`,
    `CREATE TABLE accounts (
       key_id TEXT COLLATE "C" PRIMARY KEY,
       balance BIGINT,
       held BIGINT NOT NULL DEFAULT 0,
       spent BIGINT NOT NULL DEFAULT 0,
       postings BIGINT NOT NULL DEFAULT 0,
       last_request TEXT,
       last_hold BIGINT
     ) WITH (fillfactor = 50)`,
    `CREATE TABLE open_requests (
       request_id TEXT COLLATE "C" PRIMARY KEY,
       key_id TEXT COLLATE "C" NOT NULL,
       owner TEXT COLLATE "C" NOT NULL,
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
     ) WITH (fillfactor = 50)`,
    `CREATE TABLE records (
       request_id TEXT COLLATE "C" PRIMARY KEY,
       key_id TEXT COLLATE "C" NOT NULL,
       created_at BIGINT NOT NULL,
       protocol TEXT NOT NULL,
       mode TEXT NOT NULL,
       model TEXT NOT NULL,
       upstream TEXT NOT NULL,
       queued_ms INTEGER NOT NULL,
       outcome TEXT NOT NULL,
       status INTEGER NOT NULL,
       input_tokens BIGINT,
       cached_input_tokens BIGINT,
       cache_write_tokens BIGINT,
       output_tokens BIGINT,
       reasoning_tokens BIGINT,
       usage_source TEXT,
       first_byte_ms INTEGER,
       total_ms INTEGER,
       price_input BIGINT NOT NULL DEFAULT 0,
       price_cached_input BIGINT NOT NULL DEFAULT 0,
       price_cache_write BIGINT NOT NULL DEFAULT 0,
       price_output BIGINT NOT NULL DEFAULT 0,
       price_request BIGINT NOT NULL DEFAULT 0,
       hold BIGINT NOT NULL DEFAULT 0,
       charge BIGINT NOT NULL DEFAULT 0,
       unbooked BIGINT NOT NULL DEFAULT 0,
       settlement TEXT,
       attempts TEXT NOT NULL DEFAULT '[]',
       late INTEGER NOT NULL DEFAULT 0
     ) PARTITION BY RANGE (request_id)`,
    // Partitions of months begin with the month, in UTC, in which the table is made, as the creation of each reads the whole
    // default partition. Records that come from another database are earlier, or have ids of a version whose ids were
    // random: the last time of a month here is in the year 2109.
    `DO $$ BEGIN EXECUTE format('CREATE TABLE records_earlier PARTITION OF records FOR VALUES FROM (MINVALUE) TO (%L)',
       'req_' || lpad(to_hex(CAST(extract(epoch FROM date_trunc('month', now(), 'UTC')) * 1000 AS BIGINT)), 12, '0'));
     END $$`,
    `CREATE TABLE records_high PARTITION OF records FOR VALUES FROM ('req_04') TO (MAXVALUE)`,
    `CREATE TABLE records_default PARTITION OF records DEFAULT`,
    `CREATE INDEX records_by_key ON records (key_id, created_at, request_id)`,
    `CREATE INDEX records_by_time ON records (created_at, request_id)`,
    `CREATE INDEX records_by_key_and_model ON records (key_id, model, created_at, request_id)`,
    `CREATE INDEX records_by_model ON records (model, created_at, request_id)`,
    `CREATE TABLE ledger (
       key_id TEXT COLLATE "C" NOT NULL,
       number BIGINT NOT NULL CHECK (number > 0),
       created_at BIGINT NOT NULL,
       kind TEXT NOT NULL CHECK (kind IN ('credit', 'charge')),
       delta BIGINT NOT NULL,
       request_id TEXT COLLATE "C" UNIQUE,
       reference TEXT,
       posting TEXT NOT NULL,
       PRIMARY KEY (key_id, number) INCLUDE (kind, delta)
     )`,
    `CREATE UNIQUE INDEX ledger_by_reference ON ledger (key_id, reference) WHERE reference IS NOT NULL`,
    `CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$`,
    `CREATE TRIGGER ledger_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
       EXECUTE FUNCTION refuse_ledger_change()`,
  ],
};
