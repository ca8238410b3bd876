import type { PresentedRunning } from '../../http/admin/records.ts';
import type { ManagedKey } from '../../http/present/managed-key.ts';
import { callAdmin, findAdmin, readList } from '../admin-client.ts';
import { keyPath } from '../keys/find-key.ts';
import { writeTable, writePosition } from '../output.ts';
import type { Json } from '../output.ts';

/** For how many keys a list shows the name; beyond that it shows the id. */
const maxNamedKeys = 50;

/** Lists the requests in progress, as a table or JSON. */
export async function listInFlight({ json }: Json): Promise<string> {
  const running = await readList<PresentedRunning>('/admin/in-flight');
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

function rowOf(request: PresentedRunning, names: ReadonlyMap<string, string>): string[] {
  return [
    request.request_id,
    names.get(request.key_id ?? '') ?? request.key_id ?? '-',
    ageOf(request),
    request.protocol ?? '-',
    request.mode ?? '-',
    request.model ?? '-',
    request.upstream ?? request.waits_at?.join(', ') ?? '-',
    firstTextOf(request),
  ];
}

function firstTextOf(request: PresentedRunning): string {
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
export function ageOf({ created_at: createdAt }: Pick<PresentedRunning, 'created_at'>): string {
  return `${Math.max(0, (Date.now() - Date.parse(createdAt)) / 1_000).toFixed(1)} s`;
}

/** The names of keys by their ids; keys beyond the first 50 have none here. */
export async function keyNames(ids: readonly (string | null)[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const id of [...new Set(ids)].filter((known) => known !== null).slice(0, maxNamedKeys)) {
    const key = await readKey(id);
    if (key !== null) names.set(id, key.name);
  }
  return names;
}

/** A key by its id; `null` if there is none. */
export function readKey(id: string): Promise<ManagedKey | null> {
  return findAdmin(keyPath(id));
}

/** In how many of the newest records a part of an id is searched. */
const maxSearchedRecords = 1_000;

/** An id as it is printed: `req_` and 32 hexadecimal digits. */
const wholeId = /^req_[0-9a-f]{32}$/;

/** The beginning or the end of an id, as the log on a terminal prints it. */
const partOfId = /^(?:req_)?([0-9a-f]{4,32})$/;

/** Where a part of an id is searched: among the requests in progress, or also in the newest records. */
type SearchedRequests = 'running' | 'running and recorded';

/**
 * The id of the request that has this id, or the only one whose id begins or ends with it. A whole id is returned
 * unseen. Throws if no request has the part, and if several have it.
 */
export async function findRequestId(text: string, where: SearchedRequests): Promise<string> {
  if (wholeId.test(text)) return text;
  const [, part] = partOfId.exec(text) ?? [];
  if (part === undefined)
    throw new Error(`${text} is no request id: expected req_ and 32 digits, or 4 digits or more of one`);
  const lists = [
    await readList<Pick<PresentedRunning, 'request_id'>>('/admin/in-flight'),
    where === 'running'
      ? []
      : await readList<Pick<PresentedRunning, 'request_id'>>('/admin/records', '', maxSearchedRecords),
  ];
  const ids = [...new Set(lists.flat().map(({ request_id: id }) => id))];
  const found = ids.filter((id) => id.startsWith(`req_${part}`) || id.endsWith(part));
  const [only, another] = found;
  const searched =
    where === 'running'
      ? 'request in progress'
      : `request in progress or among the newest ${maxSearchedRecords}`;
  if (only === undefined) throw new Error(`no ${searched} has an id with ${part} at its beginning or end`);
  if (another === undefined) return only;
  throw new Error(`several requests have ${part} in their ids; give more digits: ${found.join(', ')}`);
}
