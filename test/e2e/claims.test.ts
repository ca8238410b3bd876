import { describe } from 'vitest';
import { describeClaims } from './claims.ts';

describe('a request with an idempotency key, on SQLite,', () => {
  describeClaims(null);
});
