import { describe } from 'vitest';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { describeBudgetHistories } from './budget-histories.ts';
import { describeBudgets } from './budgets.ts';

async function openSqlite() {
  const engine = openTestEngine(':memory:');
  await engine.ready;
  return engine;
}

describeBudgets('SQLite', openSqlite);
describeBudgetHistories('SQLite', openSqlite, 150);

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`PostgreSQL${absent}`, () => {
  describeBudgets('PostgreSQL', () => openPostgres());
  describeBudgetHistories('PostgreSQL', () => openPostgres(), 25);
});
