import type { Migration } from '../migration.ts';
import { markOf } from '../outbox/mark-of-key.ts';
import { balanceFell } from './event-triggers.ts';

/** Events and their deliveries to webhooks. */
export const outboxStep: Migration = {
  number: 20,
  name: 'events, and their deliveries to webhooks',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN low_balance BIGINT`,
    // The mark in force, so that a settlement compares numbers of its own row and reads nothing else.
    `ALTER TABLE accounts ADD COLUMN low_mark BIGINT`,
    `CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL`,
    // What every process of this database writes of its config; without a low balance there are no events of that.
    `CREATE TABLE event_settings (
       id INTEGER PRIMARY KEY CHECK (id = 1), low_balance BIGINT, is_applied INTEGER NOT NULL DEFAULT 0
     )`,
    `CREATE TABLE outbox (
       id TEXT PRIMARY KEY,
       name TEXT NOT NULL UNIQUE,
       type TEXT NOT NULL,
       subject TEXT NOT NULL,
       position BIGINT NOT NULL,
       created_at BIGINT NOT NULL,
       data TEXT NOT NULL,
       kept_until BIGINT NOT NULL DEFAULT 0,
       stage INTEGER NOT NULL DEFAULT 0
     ) WITHOUT ROWID`,
    `CREATE INDEX outbox_by_stage ON outbox (stage, position, created_at, id) WHERE stage < 2`,
    `CREATE INDEX outbox_by_time ON outbox (created_at, id)`,
    `CREATE TABLE webhook_deliveries (
       event_id TEXT NOT NULL,
       webhook TEXT NOT NULL,
       number BIGINT NOT NULL UNIQUE,
       subject TEXT NOT NULL,
       since BIGINT NOT NULL,
       state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead')),
       attempts INTEGER NOT NULL DEFAULT 0,
       due_at BIGINT,
       ended_at BIGINT,
       result TEXT,
       PRIMARY KEY (event_id, webhook)
     ) WITHOUT ROWID`,
    `CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at, number) WHERE due_at IS NOT NULL`,
    `CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook, subject, number) WHERE ended_at IS NULL`,
    `CREATE INDEX webhook_deliveries_oldest ON webhook_deliveries (since) WHERE ended_at IS NULL`,
    `CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, number)`,
    `CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, number)`,
    `CREATE INDEX webhook_deliveries_by_both ON webhook_deliveries (webhook, state, number)`,
    `CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL`,
    `CREATE TABLE upstream_outages (upstream TEXT PRIMARY KEY, since BIGINT NOT NULL) WITHOUT ROWID`,
    `CREATE TABLE upstream_outage_nodes (
       upstream TEXT NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (upstream, owner)
     ) WITHOUT ROWID`,
    `CREATE TRIGGER account_gets_mark AFTER INSERT ON accounts WHEN NEW.low_mark IS NULL
       BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.key_id')} WHERE key_id = NEW.key_id; END`,
    `CREATE TRIGGER mark_of_key_changed AFTER UPDATE OF low_balance ON api_keys WHEN OLD.low_balance IS NOT NEW.low_balance
       BEGIN UPDATE accounts SET low_mark = ${markOf('NEW.id')} WHERE key_id = NEW.id; END`,
    // In the unit that charges, so that neither a kill nor a power failure can part the crossing and its event. What is free
    // and held together falls with charges alone, and rises with credits.
    balanceFell('balance, held'),
  ],
};
