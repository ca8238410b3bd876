import { leaseMs } from '../domain/ports/leases.ts';
import type { NextId } from '../domain/ports/clock.ts';
import type { RecordLeases } from '../domain/ports/leases.ts';
import type { Engine, FixedUnit, Statement } from './engine.ts';
import { raw, sql } from './statements.ts';

/** The id under which a process keeps what it holds. It changes when its lease was ended by others. */
export interface Owner {
  id: string;
}

/** Keeps the lease of one owner and ends those of others, over any engine. */
export function createLeases(engine: Engine, owner: Owner, nextId: NextId): RecordLeases {
  let hasHeld = false;
  return {
    owner: () => owner.id,
    async renewLease() {
      const next = hasHeld ? nextId() : owner.id;
      const [hasNext] = (await engine.call(renewLease, [owner.id, next])) ?? [];
      const hadEnded = hasHeld && hasNext === 1;
      if (hadEnded) owner.id = next;
      hasHeld = true;
      return hadEnded;
    },
    async endOverLeases() {
      // A read delays no unit, and mostly finds nothing; what it finds is judged again where it is ended.
      const [over = []] = await engine.lookUp([selectOverLeases(owner.id)]);
      if (over.length === 0) return [];
      const [, ended = []] = await engine.run([endFutureRenewals, endOverLeases(owner.id)]);
      return ended.map((row) => String(row['id']));
    },
    async endLease() {
      await engine.call(endLease, [owner.id]);
    },
  };
}

/**
 * Leases are judged by `now_ms()`, the clock of the database, which is the same for all processes that share it: their
 * own clocks may differ by hours, and be set at any time.
 */

/** One reading of that clock, so that a statement compares and writes the same time. */
const clock = '(SELECT now_ms() AS ms) AS clock';

/** The condition on an open request that its owner has no lease. */
export const hasNoLease = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = owner)';

/** The condition that an owner, given as a placeholder or a column, has a lease that is not over. */
export function holdsLease(owner: string): string {
  return `EXISTS (SELECT 1 FROM owners WHERE id = ${owner} AND renewed_at > now_ms() - ${leaseMs})`;
}

/**
 * Renews the lease of an owner. One that is over and was not ended has lost nothing, but is held without interruption
 * only from now on. Where there is none, the next owner gets a new one. It changes the row of this owner alone, and is no
 * unit of statements: it must neither wait for those, which all nodes run one after the other, nor for other renewals.
 */
export const renewLease: FixedUnit<'renew_lease'> = {
  name: 'renew_lease',
  takes: { owner: 'text', next_owner: 'text' },
  spreadBy: null,
  // A lease that the database forgets is over for others while its process still counts on it.
  mayBeForgotten: false,
  locks: [],
  preparations: [],
  decisions: [
    `UPDATE owners SET since = CASE WHEN renewed_at > clock.ms - ${leaseMs} AND since <= clock.ms THEN since ELSE clock.ms END,
       renewed_at = clock.ms
     FROM ${clock} WHERE id = :owner RETURNING 0 AS has_next`,
    `INSERT INTO owners (id, since, renewed_at) SELECT :next_owner, clock.ms, clock.ms FROM ${clock} RETURNING 1 AS has_next`,
  ],
  decided: { has_next: 'bigint' },
  changes: [],
  columns: ['has_next'],
};

/**
 * Has renewals that lie in the future count as made now: the clock of the database was set back. Otherwise the lease of a
 * process that has died since would last as long as the clock was set back. The clock is read for each row: a renewal that
 * another session commits while its row is waited for is none of the future, and stays as it is.
 */
const endFutureRenewals: Statement = sql`UPDATE owners SET renewed_at = now_ms(),
    since = CASE WHEN since > now_ms() THEN now_ms() ELSE since END
  WHERE renewed_at > now_ms()`;

/**
 * The leases that an owner may end: those of others that are over, if it has held its own one without interruption for as
 * long as a lease lasts. After an outage of the database all leases are over: the first process that is back must not end
 * those of the others, which are about to renew theirs. Its own one is left out by name, because the clock may go on
 * between two readings in one statement.
 */
const mayBeEnded = (owner: string): Statement =>
  sql`id <> ${owner} AND renewed_at <= now_ms() - ${raw(leaseMs)} AND ${{ sql: holdsLease('?'), values: [owner] }}
    AND EXISTS (SELECT 1 FROM owners WHERE id = ${owner} AND since <= now_ms() - ${raw(leaseMs)})`;

/** Reads the leases that an owner may end, and those that were renewed in the future. */
function selectOverLeases(owner: string): Statement {
  return sql`SELECT id FROM owners WHERE renewed_at > now_ms() OR (${mayBeEnded(owner)})`;
}

/** Ends the leases that an owner may end at this moment: one that was renewed since it was read is none of them. */
export function endOverLeases(owner: string): Statement {
  return sql`DELETE FROM owners WHERE ${mayBeEnded(owner)} RETURNING id`;
}

/** Ends the lease of an owner, without waiting for units of statements, and in line with its renewals. */
export const endLease: FixedUnit<'end_lease'> = {
  name: 'end_lease',
  takes: { owner: 'text' },
  spreadBy: null,
  mayBeForgotten: false,
  locks: [],
  preparations: [],
  decisions: ['DELETE FROM owners WHERE id = :owner RETURNING 1 AS ended'],
  decided: { ended: 'bigint' },
  changes: [],
  columns: ['ended'],
};

/**
 * Ends every lease there is: for an engine that has just become the only user of its database, which proves that no
 * earlier owner lives.
 */
export const endAllLeases: Statement = sql`DELETE FROM owners`;
