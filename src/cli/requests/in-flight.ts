import { AdminRefusal, callAdmin, readList } from '../admin-client.ts';
import { keyPath } from '../keys/find-key.ts';
import { findRequestId } from './find-request.ts';
import { writeTable } from '../output.ts';
import type { Json } from '../output.ts';
import { writePosition } from '../write-position.ts';

/** For how many keys a list shows the name; beyond that it shows the id. */
const maxNamedKeys = 50;

/** A request in progress, as the admin listener lists it. */
export interface RunningObject {
  readonly request_id: string;
  readonly key_id: string;
  readonly created_at: string;
  readonly protocol: string | null;
  readonly mode: string | null;
  readonly model: string | null;
  /** The upstream that was called last. */
  readonly upstream: string | null;
  /** The upstreams that it waits for; `null` for one that waits for none. */
  readonly waits_at: readonly string[] | null;
  /** What it waits for, and its position in the queue as far as that is known; `null` for one that does not wait. */
  readonly waits_for: 'slot' | 'upstream' | null;
  readonly position: number | null;
  readonly expected_wait_ms: number | null;
  /** When the first text arrived, in milliseconds after the request. */
  readonly first_byte_ms: number | null;
  /** The process that runs it, where several share a database. */
  readonly node: string | null;
}

/** Lists the requests in progress, as a table or JSON. */
export async function listInFlight({ json }: Json): Promise<string> {
  const running = (await readList('/admin/in-flight')) as RunningObject[];
  if (json) return JSON.stringify(running);
  if (running.length === 0) return 'no requests in progress';
  const names = await keyNames(running.map(({ key_id: id }) => id));
  const areShared = running.some(({ node }) => node !== null);
  return writeTable(
    [
      'REQUEST',
      'KEY',
      'FOR',
      'PROTOCOL',
      'MODE',
      'MODEL',
      'UPSTREAM',
      'FIRST TEXT',
      ...(areShared ? ['NODE'] : []),
    ],
    running.map((request) => rowOf(request, names).concat(areShared ? [request.node ?? '-'] : [])),
  );
}

function rowOf(request: RunningObject, names: ReadonlyMap<string, string>): string[] {
  return [
    request.request_id,
    names.get(request.key_id) ?? request.key_id,
    ageOf(request),
    request.protocol ?? '-',
    request.mode ?? '-',
    request.model ?? '-',
    request.upstream ?? request.waits_at?.join(', ') ?? '-',
    firstTextOf(request),
  ];
}

function firstTextOf(request: RunningObject): string {
  const { first_byte_ms: firstTextMs, waits_for: waits, position, expected_wait_ms: expectedMs } = request;
  if (position !== null) return writePosition(position, expectedMs);
  if (waits !== null) return `waits for ${waits}`;
  return firstTextMs === null ? '-' : `${firstTextMs} ms`;
}

/** Cancels a request in progress, which is named by its id or a part of it. */
export async function cancelRequest(request: string, { json }: Json): Promise<string> {
  const id = await findRequestId(request, 'running');
  const answer = await callAdmin('POST', `/admin/in-flight/${encodeURIComponent(id)}/cancel`);
  return json ? JSON.stringify(answer) : `${id} is cancelled`;
}

/** How long a request has been running, in seconds. */
export function ageOf({ created_at: createdAt }: Pick<RunningObject, 'created_at'>): string {
  return `${Math.max(0, (Date.now() - Date.parse(createdAt)) / 1_000).toFixed(1)} s`;
}

/** The names of keys by their ids; keys beyond the first 50 have none here. */
export async function keyNames(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const id of [...new Set(ids)].slice(0, maxNamedKeys)) {
    const key = await readKey(id);
    if (key !== null) names.set(id, key.name);
  }
  return names;
}

/** The fields of a key beside a request. */
interface KeyOfRequest {
  readonly id: string;
  readonly name: string;
  readonly limits: {
    readonly concurrency: number;
    readonly requests_per_minute: number;
    readonly queue_wait_ms: number;
  };
}

/** A key by its id; `null` if there is none. */
export async function readKey(id: string): Promise<KeyOfRequest | null> {
  try {
    return (await callAdmin('GET', keyPath(id))) as KeyOfRequest;
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 404) return null;
    throw error;
  }
}
