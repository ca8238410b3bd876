import { byKey, id, postgres, sql } from './parts.ts';

/** The ledger, what is left of its old rows, and what proves it. */
export const ledger = sql`
-- Every change of a balance, numbered by account, so that the rows of one lie together.
CREATE TABLE ledger (
  key_id ${id} NOT NULL,
  number BIGINT NOT NULL CHECK (number > 0),
  created_at BIGINT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('credit', 'charge')),
  delta BIGINT NOT NULL,
  request_id ${id} UNIQUE, -- of a charge
  reference TEXT, -- of a credit: the payment, which is booked once
  posting TEXT NOT NULL, -- the id of the row
  PRIMARY KEY (key_id, number)${postgres(' INCLUDE (kind, delta)')}
)${byKey};
CREATE UNIQUE INDEX ledger_by_reference ON ledger (key_id, reference) WHERE reference IS NOT NULL;

-- The sums of the rows up to a number, which were removed with their records.
CREATE TABLE ledger_folds (
  key_id ${id} PRIMARY KEY, number BIGINT NOT NULL CHECK (number > 0),
  credits BIGINT NOT NULL, charges BIGINT NOT NULL
)${byKey};
-- The credits among them, one by one: their references are refused for ever, and there are few of them.
CREATE TABLE folded_credits (
  key_id ${id} NOT NULL, number BIGINT NOT NULL, created_at BIGINT NOT NULL,
  delta BIGINT NOT NULL, reference TEXT, posting TEXT NOT NULL,
  PRIMARY KEY (key_id, number)
)${byKey};
CREATE UNIQUE INDEX folded_credits_by_reference ON folded_credits (key_id, reference) WHERE reference IS NOT NULL;

-- The hash of the chain of an account up to a row, and the balance there.
CREATE TABLE ledger_seals (
  key_id ${id} NOT NULL, number BIGINT NOT NULL CHECK (number > 0),
  hash TEXT NOT NULL, balance BIGINT NOT NULL,
  PRIMARY KEY (key_id, number)
)${byKey};
-- The same for a root: the last row of each account that is in it.
CREATE TABLE ledger_heads (
  key_id ${id} NOT NULL, root BIGINT NOT NULL, number BIGINT NOT NULL, hash TEXT NOT NULL,
  PRIMARY KEY (key_id, root)
)${byKey};
CREATE TABLE ledger_roots (
  number BIGINT PRIMARY KEY,
  created_at BIGINT NOT NULL,
  previous TEXT NOT NULL, -- the hash of the root before
  tree TEXT NOT NULL, -- the hash over all heads
  accounts BIGINT NOT NULL, -- how many heads there are
  hash TEXT NOT NULL -- of the root itself
)${byKey};
-- How often heads were stored, by which two processes that make a root notice each other: one row.
CREATE TABLE ledger_root_work (id INTEGER PRIMARY KEY CHECK (id = 1), changes BIGINT NOT NULL);
INSERT INTO ledger_root_work VALUES (1, 0);

-- The keys that sign statements.
CREATE TABLE statement_keys (
  id ${id} PRIMARY KEY,
  pem TEXT NOT NULL,
  private_pem TEXT, -- NULL where the config has it
  created_at BIGINT NOT NULL
)${byKey};
`;
