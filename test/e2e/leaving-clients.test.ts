import { describe } from 'vitest';
import { describeLeavingClients } from './leaving-clients.ts';

describe('a client that leaves, on SQLite,', () => {
  describeLeavingClients(null);
});
