import { byKey, id, sql } from './parts.ts';

/** Events and their deliveries to webhooks. */
export const events = sql`
-- What the processes write of their config: one row.
CREATE TABLE event_settings (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  low_balance BIGINT, -- of keys without one of their own; NULL where no event is wanted
  is_applied INTEGER NOT NULL DEFAULT 0, -- 1 where all accounts have their low_mark by it
  budget_levels INTEGER NOT NULL DEFAULT 0 -- 1 where an event is wanted when a budget reaches a level
);

CREATE TABLE outbox (
  id ${id} PRIMARY KEY,
  name ${id} NOT NULL UNIQUE, -- what has happened, once
  type TEXT NOT NULL,
  subject ${id} NOT NULL, -- of whose events each is delivered after the one before
  position BIGINT NOT NULL, -- their order
  created_at BIGINT NOT NULL,
  data TEXT NOT NULL, -- JSON
  kept_until BIGINT NOT NULL DEFAULT 0, -- as long as its name has to be remembered
  stage INTEGER NOT NULL DEFAULT 0 -- 0: added, 1: in the unit that makes its deliveries, 2: has them
)${byKey};
CREATE INDEX outbox_by_stage ON outbox (stage, position, created_at, id) WHERE stage < 2;
CREATE INDEX outbox_by_time ON outbox (created_at, id);

CREATE TABLE webhook_deliveries (
  event_id ${id} NOT NULL,
  webhook ${id} NOT NULL,
  number BIGINT NOT NULL UNIQUE, -- the order of all deliveries
  subject ${id} NOT NULL,
  since BIGINT NOT NULL, -- when its attempts began
  state ${id} NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at BIGINT, -- NULL while an earlier one of its subject waits
  ended_at BIGINT,
  result TEXT, -- of the last attempt
  PRIMARY KEY (event_id, webhook)
)${byKey};
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook, subject, number) WHERE ended_at IS NULL;
CREATE INDEX webhook_deliveries_oldest ON webhook_deliveries (since) WHERE ended_at IS NULL;
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, number);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, number);
CREATE INDEX webhook_deliveries_by_both ON webhook_deliveries (webhook, state, number);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- The upstreams that are down, and the processes that see it.
CREATE TABLE upstream_outages (upstream ${id} PRIMARY KEY, since BIGINT NOT NULL)${byKey};
CREATE TABLE upstream_outage_nodes (
  upstream ${id} NOT NULL,
  owner ${id} NOT NULL,
  PRIMARY KEY (upstream, owner)
)${byKey};
`;
