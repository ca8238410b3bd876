import { describe } from 'vitest';
import { openTimedPostgres } from '../support/timed-postgres.ts';
import { postgresAbsence } from '../support/test-postgres.ts';
import { describeBooks } from './describe-books.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`the books of the simulation${absent}`, () => {
  describeBooks('PostgreSQL', openTimedPostgres);
});
