import { openTestEngine } from '../support/test-engine.ts';
import { describeBudgetEvents } from './budget-events.ts';
import { describeBudgetHistories } from './budget-histories.ts';
import { describeBudgets } from './budgets.ts';
import { describeGroupBudgets } from './group-budgets.ts';
import { describeGroupHistories } from './group-histories.ts';

async function openSqlite() {
  const engine = openTestEngine(':memory:');
  await engine.ready;
  return engine;
}

describeBudgets('SQLite', openSqlite);
describeGroupBudgets('SQLite', openSqlite);
describeBudgetEvents('SQLite', openSqlite);
describeBudgetHistories('SQLite', openSqlite, 30);
describeGroupHistories('SQLite', openSqlite, 30);
