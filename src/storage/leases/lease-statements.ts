import { leaseMs } from '../../domain/lease.ts';
import type { Statement } from '../engine.ts';

/**
 * Leases are judged by `now_ms()`, the clock of the database, which is the same for all processes that share it: their
 * own clocks may differ by hours, and be set at any time.
 */

/** One reading of that clock, so that a statement compares and writes the same time. */
const clock = '(SELECT now_ms() AS ms) AS clock';

/** The condition on an open request that its owner has no lease. */
export const hasNoLease = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = open_requests.owner)';

/** The condition that an owner, given as a placeholder or a column, has a lease that is not over. */
export function holdsLease(owner: string): string {
  return `EXISTS (SELECT 1 FROM owners WHERE id = ${owner} AND renewed_at > now_ms() - ${leaseMs})`;
}

/**
 * Renews the lease of one owner. One that is over and was not ended has lost nothing, but is held without interruption
 * only from now on. Where there is none, `next` becomes the owner of a new one: the last statement has its row then.
 *
 * Where the clock of the database was set back, renewals that lie in its future count as made now. Otherwise the lease of
 * a process that has died since would last as long as the clock was set back.
 */
export function renewLease(owner: string, next: string): readonly Statement[] {
  return [
    {
      sql: `UPDATE owners SET renewed_at = clock.ms, since = CASE WHEN since > clock.ms THEN clock.ms ELSE since END
            FROM ${clock} WHERE renewed_at > clock.ms`,
      values: [],
    },
    {
      sql: `UPDATE owners SET since = CASE WHEN renewed_at > clock.ms - ${leaseMs} THEN since ELSE clock.ms END,
              renewed_at = clock.ms
            FROM ${clock} WHERE id = ?`,
      values: [owner],
    },
    {
      sql: `INSERT INTO owners (id, since, renewed_at) SELECT ?, clock.ms, clock.ms
            FROM ${clock} WHERE NOT EXISTS (SELECT 1 FROM owners WHERE id = ?) RETURNING id`,
      values: [next, owner],
    },
  ];
}

/**
 * The leases that an owner may end: those of others that are over, if it has held its own one without interruption for as
 * long as a lease lasts. After an outage of the database all leases are over: the first process that is back must not end
 * those of the others, which are about to renew theirs. Its own one is left out by name, because the clock may go on
 * between two readings in one statement.
 */
const mayBeEnded = `id <> ? AND renewed_at <= now_ms() - ${leaseMs} AND ${holdsLease('?')}
  AND EXISTS (SELECT 1 FROM owners WHERE id = ? AND since <= now_ms() - ${leaseMs})`;

/** Reads the leases that an owner may end. */
export function selectOverLeases(owner: string): Statement {
  return { sql: `SELECT id FROM owners WHERE ${mayBeEnded}`, values: [owner, owner, owner] };
}

/** Ends the leases that an owner may end at this moment: one that was renewed since it was read is none of them. */
export function endOverLeases(owner: string): Statement {
  return { sql: `DELETE FROM owners WHERE ${mayBeEnded} RETURNING id`, values: [owner, owner, owner] };
}

/** Ends the lease of one owner. */
export function endLease(owner: string): Statement {
  return { sql: 'DELETE FROM owners WHERE id = ?', values: [owner] };
}

/**
 * Ends every lease there is: for an engine that has just become the only user of its database, which proves that no
 * earlier owner lives.
 */
export const endAllLeases: Statement = { sql: 'DELETE FROM owners', values: [] };
