import { Client } from 'pg';
import { describe, onTestFinished } from 'vitest';
import type { Engine } from '../../src/storage/engine.ts';
import { openTimedPostgres } from '../support/timed-postgres.ts';
import { onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { describeAudit } from './audit.ts';
import { describeDeclarations } from './declarations.ts';
import { describeManyDeclarations } from './many-declarations.ts';
import { createItems, describeEngine, say } from './engine.ts';
import { describeClaimRows } from './claims.ts';
import { describeFixedUnits } from './fixed-units.ts';
import { describeHistory } from './history.ts';
import { describeKeyPages } from './key-pages.ts';
import { describeLeases } from './leases.ts';
import { describeOutbox } from './outbox.ts';
import { describePrepaidSecrets } from './prepaid-secrets.ts';
import { describeRefusals } from './refusals.ts';
import { describeRetention } from './retention.ts';
import { describeStore } from './store.ts';
import { describeTokenUse } from './token-use.ts';

/** Statements and locks take at most so long, so that a test of a fault does not. */
const shortLimits = { statementMs: 2_000, lockMs: 200 };

/** Has the tables of a fault in place: an engine with the table of items. */
async function openWithItems() {
  const engine = await openPostgres({ unitLimits: shortLimits });
  await engine.run([createItems]);
  return engine;
}

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`PostgreSQL${absent}`, () => {
  const open = (): Promise<Engine> => openPostgres();

  describeEngine('PostgreSQL', {
    open,
    passingFaults: {
      async locked() {
        const engine = await openWithItems();
        const other = new Client({ connectionString: engine.database.url });
        await other.connect();
        await other.query('BEGIN; LOCK TABLE items');
        // Dropping the database ends its connections.
        other.on('error', () => {});
        onTestFinished(() => other.end().catch(() => {}));
        return engine;
      },
      async 'slow to answer'() {
        const engine = await openPostgres({ unitLimits: { statementMs: 100, lockMs: 5_000 } });
        await engine.run([
          createItems,
          say(
            `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NEW; END'`,
          ),
          say('CREATE TRIGGER wait BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION wait()'),
        ]);
        return engine;
      },
      async stopped() {
        const engine = await openWithItems();
        const { name } = engine.database;
        await onServer(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
        await onServer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
        return engine;
      },
      async closed() {
        const engine = await openWithItems();
        await engine.close();
        return engine;
      },
    },
  });

  describeFixedUnits('PostgreSQL', open);
  describeStore('PostgreSQL', open);
  describeAudit('PostgreSQL', { open, unprotect: (table) => [`ALTER TABLE ${table} DISABLE TRIGGER USER`] });
  describeKeyPages('PostgreSQL', open);
  describeClaimRows('PostgreSQL', openTimedPostgres);
  describeLeases('PostgreSQL', openTimedPostgres);
  describeDeclarations('PostgreSQL', open);
  describeManyDeclarations('PostgreSQL', open);
  describePrepaidSecrets('PostgreSQL', open, 20);
  describeRetention('PostgreSQL', open);
  describeRefusals('PostgreSQL', open);
  describeHistory('PostgreSQL', open);
  describeOutbox('PostgreSQL', openTimedPostgres);
  describeTokenUse('PostgreSQL', openTimedPostgres, 10);
});
