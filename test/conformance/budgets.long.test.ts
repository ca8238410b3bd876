import { describe } from 'vitest';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { describeBudgetEvents } from './budget-events.ts';
import { describeBudgetHistories } from './budget-histories.ts';
import { describeBudgets } from './budgets.ts';
import { describeGroupBudgets } from './group-budgets.ts';
import { describeGroupHistories } from './group-histories.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`PostgreSQL${absent}`, () => {
  describeBudgets('PostgreSQL', () => openPostgres());
  describeGroupBudgets('PostgreSQL', () => openPostgres());
  describeBudgetEvents('PostgreSQL', () => openPostgres());
  describeBudgetHistories('PostgreSQL', () => openPostgres(), 25);
  describeGroupHistories('PostgreSQL', () => openPostgres(), 25);
});
