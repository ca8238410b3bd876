import { describe } from 'vitest';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { describeChangingBudgets } from './changing-budgets.ts';
import type { HistoryDatabase } from './changing-budgets.ts';

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

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`PostgreSQL${absent}`, () => {
  describeChangingBudgets('PostgreSQL', onPostgres, 2);
});
