import type { Lease } from '../domain/ports/records.ts';
import { toPlain } from './engine.ts';
import type { Row, Statement } from './engine.ts';

/** Of a fixed unit: takes the lease of the owner `?1` if it has none; changes nothing of a lease that exists. */
export const takeLease = 'INSERT INTO owners (id) VALUES (?1) ON CONFLICT (id) DO NOTHING';

/** Renews a lease, taking it anew if it was ended, and reads those of all other owners. */
export function renewLease(owner: string): readonly Statement[] {
  return [
    { sql: toPlain(takeLease).sql, values: [owner] },
    { sql: 'UPDATE owners SET renewals = renewals + 1 WHERE id = ?', values: [owner] },
    { sql: 'SELECT id, renewals FROM owners WHERE id <> ?', values: [owner] },
  ];
}

/** Ends a lease that was not renewed since it was read. */
export function endLease({ owner, renewals }: Lease): Statement {
  return {
    sql: 'DELETE FROM owners WHERE id = ? AND renewals = ? RETURNING id',
    values: [owner, renewals],
  };
}

/**
 * Ends every lease there is: for an engine that has just become the only user of its database, which proves that no
 * earlier owner lives.
 */
export const endAllLeases: Statement = { sql: 'DELETE FROM owners', values: [] };

/** The condition on an open request that its owner has no lease. */
export const hasNoLease = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = open_requests.owner)';

export function readLease(row: Row): Lease {
  return { owner: String(row['id']), renewals: Number(row['renewals']) };
}
