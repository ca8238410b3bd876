import { describe } from 'vitest';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { describeRetentionHistories } from './retention-histories.ts';
import { describeStatementHistories } from './statements-histories.ts';
import { describeUsageHistories } from './usage-histories.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`histories on PostgreSQL${absent}`, () => {
  describeRetentionHistories('PostgreSQL', openPostgres, 5);
  describeStatementHistories('PostgreSQL', openPostgres, 3);
  describeUsageHistories('PostgreSQL', openPostgres, 4);
});
