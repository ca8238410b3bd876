import type { Migration } from '../../migration.ts';

/** The leases of the processes that share the database, in its own time, which is the same for all of them. */
export const leases: Migration = {
  number: 2,
  name: 'leases of processes',
  statements: [
    // Names the database, so that what is kept outside of it is not taken for another one's.
    `CREATE TABLE database_id (id TEXT NOT NULL)`,
    `INSERT INTO database_id VALUES (left(replace(CAST(gen_random_uuid() AS TEXT), '-', ''), 12))`,
    `CREATE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE AS
       $$ SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) $$`,
    `CREATE TABLE owners (
       id TEXT COLLATE "C" PRIMARY KEY,
       since BIGINT NOT NULL,
       renewed_at BIGINT NOT NULL
     ) WITH (fillfactor = 50)`,
  ],
};
