import { describe } from 'vitest';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { describeSql } from './describe-sql.ts';

describe.skipIf(postgresAbsence !== null)(
  `PostgreSQL${postgresAbsence === null ? '' : ` (${postgresAbsence})`}`,
  () => {
    describeSql('PostgreSQL', () => openPostgres());
  },
);
