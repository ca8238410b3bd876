import { groupIdPrefix } from '../../../domain/limits/groups.ts';
import type { RunningRequest, RunningRequests } from '../../../domain/ports/running-requests.ts';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { Engine, Row, Statement } from '../../engine.ts';
import { findRequestKey, isRequest, requestKeyOf } from '../../records/request-key.ts';
import { listOf, lookUpRows, raw, readRows, sql } from '../../statements.ts';

/** How many requests of other nodes are listed: those that arrived first. */
const maxListed = 1_000;

/** How many cancellations are looked up at a time: clients may send any number of them. */
const maxLookUps = 64;

/** Where requests of nodes are, from their wait for a slot on. A request may be in several tables at a time. */
const places = placesWhere(raw('TRUE'), raw('TRUE'));

/** The same of those that are found by their ids, and, where they are open, by the key of their rows. */
function placesWhere(byId: Statement, byKey: Statement): Statement {
  return sql`(SELECT request_id, key_id, owner, 0 AS has_slot FROM waiting_requests WHERE ${byId}
  UNION ALL SELECT request_id, key_id, owner, 1 FROM slots WHERE ${byId}
  UNION ALL SELECT request_id, key_id, owner, 1 FROM open_requests WHERE ${byKey}) AS places`;
}

/**
 * The requests in progress on the other nodes, from PostgreSQL; `count` counts the slots on all nodes. What only the other
 * process knows is `null`. Requests of a process without a lease are neither listed nor cancelled. `owner` is the id under
 * which this process has its lease now.
 */
export function createRunningElsewhere(engine: Engine, owner: () => string): RunningRequests {
  let lookUps = 0;
  return {
    async list() {
      return (await readRows(engine, selectRunning(owner()))).map(readRunning);
    },
    async count(keyIds) {
      const rows = await lookUpRows(engine, selectSlots(keyIds));
      return new Map(rows.map(({ key_id: keyId, running }) => [String(keyId), Number(running)]));
    },
    async cancel(requestId, keyId) {
      if (findRequestKey(requestId) === null) return false;
      if (lookUps >= maxLookUps) throw new StorageError('too many cancellations are looked up', 'slow');
      lookUps++;
      try {
        // Only what is found is written: clients may send any ids, and as often as they like.
        const [found] = await lookUpRows(engine, selectTarget(requestId, keyId, owner()));
        if (found === undefined) return false;
        if (found['is_cancelled'] === 1) return true;
        const [, written = []] = await engine.run(cancelRequest(requestId, keyId, owner()));
        return written.length > 0;
      } finally {
        lookUps--;
      }
    },
  };
}

function selectRunning(owner: string): Statement {
  return sql`SELECT found.request_id, found.key_id, found.has_slot, found.name, protocol, mode, model, upstream
    FROM (SELECT request_id, min(key_id) AS key_id, max(has_slot) AS has_slot, min(owners.name) AS name
          FROM ${places} JOIN owners ON owners.id = owner WHERE owner <> ${owner} AND NOT starts_with(key_id, '${raw(groupIdPrefix)}')
          GROUP BY request_id ORDER BY request_id LIMIT ${maxListed}) AS found
    LEFT JOIN open_requests ON open_requests.request_id = found.request_id
    ORDER BY found.request_id`;
}

function readRunning(row: Row): RunningRequest {
  const requestId = String(row['request_id']);
  const protocol = row['protocol'] as RunningRequest['protocol'];
  const text = (column: string): string | null => (row[column] === null ? null : String(row[column]));
  // As in the lists of the other node: the path of a request that is passed on is in its record alone.
  const isText = protocol !== null && protocol !== 'passthrough';
  return {
    requestId,
    protocol,
    createdAtMs: findRequestKey(requestId)?.createdAtMs ?? 0,
    keyId: String(row['key_id']),
    groupId: null,
    hasSlot: row['has_slot'] === 1,
    permitWait: null,
    mode: isText ? (row['mode'] as RunningRequest['mode']) : null,
    model: isText ? text('model') : null,
    upstream: text('upstream'),
    firstTextMs: null,
    listening: null,
    joined: null,
    node: text('name') || null,
  };
}

function selectSlots(keyIds: readonly string[]): Statement {
  return sql`SELECT key_id, running FROM key_limits WHERE key_id IN (${listOf(keyIds)})`;
}

/** Finds the other node that runs a request. */
function targetOf(requestId: string, keyId: string | undefined, owner: string): Statement {
  const ofKey = keyId === undefined ? raw('') : sql` AND key_id = ${keyId}`;
  const ofRequest = placesWhere(sql`request_id = ${requestId}`, isRequest(requestKeyOf(requestId)));
  return sql`SELECT places.request_id, owner FROM ${ofRequest} JOIN owners ON owners.id = owner
    WHERE owner <> ${owner}${ofKey} LIMIT 1`;
}

function selectTarget(requestId: string, keyId: string | undefined, owner: string): Statement {
  return sql`SELECT cancellations.request_id IS NOT NULL AS is_cancelled
    FROM (${targetOf(requestId, keyId, owner)}) AS target
    LEFT JOIN cancellations ON cancellations.request_id = target.request_id AND cancellations.owner = target.owner`;
}

/** Writes a cancellation for the node that runs the request, and removes those that no process will take any more. */
function cancelRequest(requestId: string, keyId: string | undefined, owner: string): readonly Statement[] {
  return [
    sql`DELETE FROM cancellations WHERE owner NOT IN (SELECT id FROM owners)`,
    sql`INSERT INTO cancellations (request_id, owner) ${targetOf(requestId, keyId, owner)}
      ON CONFLICT (request_id) DO UPDATE SET owner = excluded.owner RETURNING request_id`,
  ];
}
