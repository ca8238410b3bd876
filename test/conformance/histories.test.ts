import { openTestEngine } from '../support/test-engine.ts';
import { describeRetentionHistories } from './retention-histories.ts';
import { describeStatementHistories } from './statements-histories.ts';
import { describeUsageHistories } from './usage-histories.ts';

const open = () => Promise.resolve(openTestEngine(':memory:'));

describeRetentionHistories('SQLite', open, 20);
describeStatementHistories('SQLite', open, 20);
describeUsageHistories('SQLite', open, 10);
