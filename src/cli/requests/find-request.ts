import type { PresentedRunning } from '../../http/admin/records.ts';
import { callAdmin, readList } from '../admin-client.ts';
import type { Json } from '../output.ts';

/** Cancels a request in progress, which is named by its id or a part of it. */
export async function cancelRequest(request: string, { json }: Json): Promise<string> {
  const id = await findRequestId(request, 'running');
  const answer = await callAdmin('POST', `/admin/in-flight/${encodeURIComponent(id)}/cancel`);
  return json ? JSON.stringify(answer) : `${id} is cancelled`;
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
