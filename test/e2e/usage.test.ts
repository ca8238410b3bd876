import { describe } from 'vitest';
import { describeUsage } from './describe-usage.ts';

describe('usage on SQLite', () => {
  describeUsage(null);
});
