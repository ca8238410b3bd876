import { byKey, bytes, either, filled, id, sql } from './parts.ts';
import { requestIdOf } from './requests.ts';

const inHex = (column: string) => either(`lower(hex(${column}))`, `encode(${column}, 'hex')`);

/** The claims of requests: a further step of both engines. */
export const claimRows = sql`
-- Requests that clients have named with an Idempotency-Key, by their keys: each is one question, which is asked and charged
-- once. A claim is running under the lease of its owner, or has ended; a free one has no row.
CREATE TABLE claim_rows (
  key_id ${id} NOT NULL,
  name ${bytes} NOT NULL, -- SHA-256 of what the client named it
  request ${bytes} NOT NULL, -- SHA-256 of all that it asks
  created_at BIGINT NOT NULL, tail ${bytes} NOT NULL, -- the id of the request that runs it, or has run it
  owner ${id}, -- the process that runs it, or has run it; NULL where it ended under an earlier version
  ended_at BIGINT,
  PRIMARY KEY (key_id, name)
)${byKey}${filled(80)};
CREATE INDEX claim_rows_by_owner ON claim_rows (owner) WHERE owner IS NOT NULL;
CREATE INDEX claim_rows_by_end ON claim_rows (ended_at) WHERE ended_at IS NOT NULL;

-- The same to be read.
CREATE VIEW claims AS SELECT key_id, name, ${inHex('request')} AS request, ${requestIdOf('claim_rows')} AS request_id,
  created_at, owner, ended_at FROM claim_rows;
`;

/** Retries that join, and which process has the answer of an ended claim: a further step of both engines. */
export const claimOwners = sql`
-- How long a request of the key goes on without its client, so that a retry may join it; NULL for not at all.
ALTER TABLE api_keys ADD COLUMN join_retries_ms INTEGER;

-- Where other processes reach this one for answers that it has; NULL where they do not.
ALTER TABLE owners ADD COLUMN address TEXT;

-- A claim keeps its owner when it ends: those that run are found by their end.
DROP INDEX claim_rows_by_owner;
CREATE INDEX claim_rows_by_owner ON claim_rows (owner) WHERE ended_at IS NULL;
`;
