import type { Migration } from '../../migration.ts';

/** Events and their deliveries to webhooks. Earlier versions run beside it: the trigger notes what their settlements do, too. */
export const outbox: Migration = {
  number: 7,
  name: 'events, and their deliveries to webhooks',
  statements: [
    `ALTER TABLE api_keys ADD COLUMN low_balance BIGINT`,
    `CREATE INDEX api_keys_by_expiry ON api_keys (expires_at, id) WHERE expires_at IS NOT NULL`,
    // What every node writes of its config; without a low balance there are no events of that.
    `CREATE TABLE event_settings (id INTEGER PRIMARY KEY CHECK (id = 1), low_balance BIGINT)`,
    `CREATE TABLE outbox (
       id TEXT COLLATE "C" PRIMARY KEY,
       name TEXT COLLATE "C" NOT NULL UNIQUE,
       type TEXT NOT NULL,
       subject TEXT COLLATE "C" NOT NULL,
       position BIGINT NOT NULL,
       created_at BIGINT NOT NULL,
       data TEXT NOT NULL,
       kept_until BIGINT NOT NULL DEFAULT 0,
       stage INTEGER NOT NULL DEFAULT 0
     )`,
    `CREATE INDEX outbox_by_stage ON outbox (stage, position, created_at, id) WHERE stage < 2`,
    `CREATE INDEX outbox_by_time ON outbox (created_at, id)`,
    `CREATE TABLE webhook_deliveries (
       event_id TEXT COLLATE "C" NOT NULL,
       webhook TEXT COLLATE "C" NOT NULL,
       number BIGINT NOT NULL UNIQUE,
       subject TEXT COLLATE "C" NOT NULL,
       since BIGINT NOT NULL,
       state TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead')),
       attempts INTEGER NOT NULL DEFAULT 0,
       due_at BIGINT,
       ended_at BIGINT,
       result TEXT,
       PRIMARY KEY (event_id, webhook)
     )`,
    `CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at, number) WHERE due_at IS NOT NULL`,
    `CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook, subject, number) WHERE ended_at IS NULL`,
    `CREATE INDEX webhook_deliveries_oldest ON webhook_deliveries (since) WHERE ended_at IS NULL`,
    `CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, number)`,
    `CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook, number)`,
    `CREATE INDEX webhook_deliveries_by_both ON webhook_deliveries (webhook, state, number)`,
    `CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL`,
    `CREATE TABLE upstream_outages (upstream TEXT COLLATE "C" PRIMARY KEY, since BIGINT NOT NULL)`,
    `CREATE TABLE upstream_outage_nodes (
       upstream TEXT COLLATE "C" NOT NULL, owner TEXT COLLATE "C" NOT NULL, PRIMARY KEY (upstream, owner)
     )`,
    // In the unit that charges, so that neither a kill nor a crash can part the crossing and its event. What is free and held
    // together falls with charges alone, and rises with credits.
    `CREATE FUNCTION note_low_balance() RETURNS trigger LANGUAGE plpgsql AS
       $$ DECLARE
         level BIGINT;
         key_name TEXT;
       BEGIN
         SELECT coalesce(api_keys.low_balance, event_settings.low_balance), api_keys.name INTO level, key_name
         FROM event_settings JOIN api_keys ON api_keys.id = NEW.key_id
         WHERE event_settings.id = 1 AND event_settings.low_balance IS NOT NULL;
         IF OLD.balance + OLD.held >= level AND NEW.balance + NEW.held < level THEN
           INSERT INTO outbox (id, name, type, subject, position, created_at, data)
           VALUES (
             'evt_' || lpad(to_hex(now_ms()), 12, '0') || left(replace(CAST(gen_random_uuid() AS TEXT), '-', ''), 20),
             'balance.low:' || NEW.key_id || ':' || NEW.postings, 'balance.low', 'key:' || NEW.key_id, NEW.postings, now_ms(),
             CAST(json_build_object('key_id', NEW.key_id, 'key_name', key_name, 'balance_nanos', NEW.balance + NEW.held,
               'low_balance_nanos', level) AS TEXT))
           ON CONFLICT (name) DO NOTHING;
         END IF;
         RETURN NULL;
       END $$`,
    `CREATE TRIGGER balance_fell AFTER UPDATE OF balance, held ON accounts FOR EACH ROW
       WHEN (NEW.balance + NEW.held < OLD.balance + OLD.held) EXECUTE FUNCTION note_low_balance()`,
  ],
  runsWith: 6,
};
