import { describe } from 'vitest';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import { describeUnstorableValues } from './unstorable-values.ts';

describe.skipIf(postgresAbsence !== null)('on PostgreSQL', () => {
  describeUnstorableValues(createDatabase);
});
