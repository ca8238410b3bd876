/** One step of the schema. A landed step is never changed: a change is a new step. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly statements: readonly string[];
}

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
];
