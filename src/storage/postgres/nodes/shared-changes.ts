import type { FoundChanges, SharedChanges } from '../../../domain/ports/shared-changes.ts';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { Engine, Row, Statement } from '../../engine.ts';
import { listOf, lookUpRows, sql } from '../../statements.ts';

/** How many cancellations one read finds; the next read finds the others. */
const maxCancellations = 500;

/** A process among those that share the database. */
export interface NamedOwner {
  /** The id under which it has its lease now, and keeps the requests that begin. */
  readonly owner: () => string;
  /** What operators see of it, such as its host's name and the number of its process. */
  readonly name: string;
  /** Where the others reach it; `null` where they can't, or not yet. */
  readonly address: () => string | null;
}

/** Reads the changes that other nodes have made in PostgreSQL. */
export function createSharedChanges(engine: Engine, self: NamedOwner): SharedChanges {
  const { owner } = self;
  return {
    async find() {
      return readChanges(await lookUpRows(engine, selectChanges(owner())), self);
    },
    async acknowledge({ cancelled, lacksName }) {
      await engine.run([removeCancellations(cancelled), ...(lacksName ? [nameOf(self)] : [])]);
    },
  };
}

/** One row with the count of changes, or one for each cancellation. */
function selectChanges(owner: string): Statement {
  return sql`SELECT key_changes.count, cancellations.request_id, owners.name, owners.address FROM key_changes
    LEFT JOIN cancellations ON cancellations.owner = ${owner}
    LEFT JOIN owners ON owners.id = ${owner}
    ORDER BY cancellations.request_id LIMIT ${maxCancellations}`;
}

function readChanges(rows: readonly Row[], { name, address }: NamedOwner): FoundChanges {
  const [first] = rows;
  // Without the count a revoked key would be valid for ever.
  if (first === undefined) throw new StorageError('the count of key changes is missing', 'unknown');
  return {
    keyChanges: Number(first['count']),
    cancelled: rows.flatMap(({ request_id: id }) => (id === null ? [] : [String(id)])),
    lacksName: first['name'] !== null && (first['name'] !== name || first['address'] !== address()),
  };
}

function removeCancellations(requestIds: readonly string[]): Statement {
  return sql`DELETE FROM cancellations WHERE request_id IN (${listOf(requestIds)})`;
}

/** Writes what the others know a process by, under the lease that it has now. */
export async function nameLease(engine: Engine, self: NamedOwner): Promise<void> {
  await engine.run([nameOf(self)]);
}

function nameOf({ owner, name, address }: NamedOwner): Statement {
  return sql`UPDATE owners SET name = ${name}, address = ${address()} WHERE id = ${owner()}`;
}
