import { adminPath, callAdmin, readPages } from '../../api/admin-api.ts';

/** In how many of the newest records a part of an id is searched, as `textgate show` does: pages of the gateway's most. */
const pageSize = 200;
const maxPages = 5;
export const maxSearched = pageSize * maxPages;

const wholeId = /^req_[0-9a-f]{32}$/;
const partOfId = /^…?(?:req_)?([0-9a-f]{4,32})…?$/;

interface Identified {
  readonly request_id: string;
}

/**
 * The ids of the requests that have this id, or one that begins or ends like this: a log on a terminal prints such parts.
 * `null` where the text can't be a part of an id.
 */
export async function findRequestIds(text: string, signal: AbortSignal): Promise<readonly string[] | null> {
  if (wholeId.test(text)) return [text];
  const [, part] = partOfId.exec(text) ?? [];
  if (part === undefined) return null;
  const [running, recorded] = await Promise.all([
    callAdmin<{ readonly data: readonly Identified[] }>(adminPath('in-flight'), { signal }),
    readPages<Identified>('records', { limit: pageSize }, { cursor: 'before', maxPages, signal }),
  ]);
  const ids = new Set([...running.data, ...recorded.rows].map(({ request_id: id }) => id));
  return [...ids].filter((id) => id.startsWith(`req_${part}`) || id.endsWith(part));
}
