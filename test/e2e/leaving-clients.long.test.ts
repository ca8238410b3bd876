import { describe } from 'vitest';
import { absent, createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import { describeLeavingClients } from './leaving-clients.ts';

describe.skipIf(postgresAbsence !== null)(`a client that leaves, on PostgreSQL${absent},`, () => {
  describeLeavingClients(createDatabase);
});
