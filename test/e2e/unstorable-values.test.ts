import { describe } from 'vitest';
import { describeUnstorableValues } from './unstorable-values.ts';

describe('on SQLite', () => {
  describeUnstorableValues(null);
});
