import { describe } from 'vitest';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { say } from './engine.ts';
import { describeStatements, handChanges } from './statements.ts';

describe.skipIf(postgresAbsence !== null)(
  `PostgreSQL${postgresAbsence === null ? '' : ` (${postgresAbsence})`}`,
  () => {
    describeStatements(
      'PostgreSQL',
      () => openPostgres(),
      (engine, table) => engine.run([say(`ALTER TABLE ${table} DISABLE TRIGGER USER`)]),
      handChanges.slice(0, 1),
    );
  },
);
