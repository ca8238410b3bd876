import type { LeavableDuty } from '../../../domain/ports/shared-changes.ts';
import type { Engine, Statement } from '../../engine.ts';
import { lookUpRows, sql } from '../../statements.ts';

/** The duties that there are. */
export type DutyName =
  | 'ledger audit'
  | 'ledger roots'
  | 'metrics of top keys'
  | 'removal of old records'
  | 'usage rollups by group'
  | 'webhook delivery';

/**
 * A duty as a row that names its node, by the id under which that has its lease. The node loses it to another one when it
 * has no lease any more.
 */
export function createSharedDuty(engine: Engine, name: DutyName, owner: () => string): LeavableDuty {
  return {
    async isOurs() {
      // Most times the duty is held, and nothing has to be written.
      const [holder] = await lookUpRows(engine, selectHolder(name));
      if (holder !== undefined) return holder['owner'] === owner();
      const [taken = []] = await engine.run([takeDuty(name, owner())]);
      return taken.length > 0;
    },
    async giveUp() {
      await engine.run([sql`DELETE FROM duties WHERE name = ${name} AND owner = ${owner()}`]);
    },
  };
}

/** The node that has the duty, and a lease. */
function selectHolder(name: DutyName): Statement {
  return sql`SELECT owner FROM duties JOIN owners ON owners.id = owner WHERE duties.name = ${name}`;
}

/** Takes a duty that no node with a lease has; without a lease of its own a node takes none. */
function takeDuty(name: DutyName, owner: string): Statement {
  return sql`INSERT INTO duties (name, owner) SELECT CAST(${name} AS TEXT), id FROM owners WHERE id = ${owner}
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner
      WHERE duties.owner NOT IN (SELECT id FROM owners)
    RETURNING owner`;
}
