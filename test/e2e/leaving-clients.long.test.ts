import { describe } from 'vitest';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import { describeLeavingClients } from './leaving-clients.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`a client that leaves, on PostgreSQL${absent},`, () => {
  describeLeavingClients(createDatabase);
});
