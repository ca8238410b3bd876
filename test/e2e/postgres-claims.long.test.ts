import { describe } from 'vitest';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import { describeClaims } from './claims.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(
  `a request with an idempotency key, on PostgreSQL${absent},`,
  () => {
    describeClaims(createDatabase);
  },
);
