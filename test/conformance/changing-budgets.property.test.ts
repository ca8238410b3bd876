import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe } from 'vitest';
import { onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { describeChangingBudgets } from './changing-budgets.ts';
import type { HistoryDatabase } from './changing-budgets.ts';

const histories = Number(process.env['BUDGET_RUNS'] ?? 8);

/** A file, of which a killed process leaves a copy: whatever it does afterwards is not in it. */
function onFile(path = join(makeTemporaryFolder(), 'textgate.db')): HistoryDatabase {
  return {
    storage: { url: `sqlite:${path}`, durability: 'normal' },
    async kill() {
      const copy = join(makeTemporaryFolder(), 'textgate.db');
      const database = new DatabaseSync(path);
      database.exec(`VACUUM INTO '${copy}'`);
      database.close();
      return { database: onFile(copy), isShared: false };
    },
    async audit() {
      const engine = openTestEngine(path);
      await engine.ready;
      return engine;
    },
    close: async () => {},
  };
}

/** A database on a server: a killed process has no lease any more. What it settles later is charged. */
async function onPostgres(): Promise<HistoryDatabase> {
  const engine = await openPostgres();
  const { url } = engine.database;
  const database: HistoryDatabase = {
    storage: { url, spool: makeTemporaryFolder() },
    async kill() {
      await onServer('DELETE FROM owners', url);
      return { database, isShared: true };
    },
    audit: async () => engine,
    close: () => engine.close(),
  };
  return database;
}

describeChangingBudgets('SQLite', async () => onFile(), histories);

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`PostgreSQL${absent}`, () => {
  describeChangingBudgets('PostgreSQL', onPostgres, Math.ceil(histories / 4));
});
