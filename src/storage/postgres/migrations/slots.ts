import type { Migration } from '../../migration.ts';

/** Slots, starts and the lines of those that wait for a slot. The row of a key is locked before its other rows. */
export const slots: Migration = {
  number: 3,
  name: 'slots, starts and waiting requests',
  statements: [
    `CREATE TABLE key_limits (
       key_id TEXT COLLATE "C" PRIMARY KEY,
       running BIGINT NOT NULL DEFAULT 0,
       waiting BIGINT NOT NULL DEFAULT 0,
       starts BIGINT NOT NULL DEFAULT 0,
       last_start_at BIGINT NOT NULL DEFAULT 0,
       last_ticket BIGINT NOT NULL DEFAULT 0
     ) WITH (fillfactor = 50)`,
    `CREATE TABLE slots (
       request_id TEXT COLLATE "C" PRIMARY KEY,
       key_id TEXT COLLATE "C" NOT NULL,
       owner TEXT COLLATE "C" NOT NULL
     ) WITH (fillfactor = 50)`,
    `CREATE INDEX slots_by_owner ON slots (owner)`,
    `CREATE TABLE starts (key_id TEXT COLLATE "C" NOT NULL, at BIGINT NOT NULL)`,
    `CREATE INDEX starts_by_key ON starts (key_id, at)`,
    `CREATE TABLE waiting_requests (
       key_id TEXT COLLATE "C" NOT NULL,
       ticket BIGINT NOT NULL,
       request_id TEXT COLLATE "C" NOT NULL UNIQUE,
       owner TEXT COLLATE "C" NOT NULL,
       concurrency BIGINT NOT NULL,
       requests_per_minute BIGINT NOT NULL,
       PRIMARY KEY (key_id, ticket)
     )`,
    `CREATE INDEX waiting_requests_by_owner ON waiting_requests (owner)`,
    `CREATE TYPE limit_decision AS (
       verdict TEXT, in_flight BIGINT, remaining_starts BIGINT, reset_ms BIGINT
     )`,
    `CREATE TABLE ended_waits (
       number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
       request_id TEXT COLLATE "C" NOT NULL UNIQUE,
       owner TEXT COLLATE "C" NOT NULL,
       verdict TEXT NOT NULL,
       in_flight BIGINT NOT NULL,
       remaining_starts BIGINT NOT NULL,
       reset_ms BIGINT NOT NULL
     )`,
    `CREATE INDEX ended_waits_by_owner ON ended_waits (owner)`,
  ],
};
