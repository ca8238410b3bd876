import { adminPath, callAdmin } from '../../api/admin-api.ts';

/** In how many of the newest records a part of an id is searched, as `textgate show` does. */
const maxSearched = 1_000;

const wholeId = /^req_[0-9a-f]{32}$/;
const partOfId = /^…?(?:req_)?([0-9a-f]{4,32})…?$/;

interface Found {
  readonly data: readonly { readonly request_id: string }[];
}

/** The id of the only request that has this id, or one that begins or ends like this. Throws what to do otherwise. */
export async function findRequestId(text: string): Promise<string> {
  const given = text.trim();
  if (wholeId.test(given)) return given;
  const [, part] = partOfId.exec(given) ?? [];
  if (part === undefined)
    throw new Error('Enter a request id: req_ and 32 digits, or 4 digits or more of one.');
  const lists = await Promise.all([
    callAdmin<Found>(adminPath('in-flight')),
    callAdmin<Found>(adminPath('records', { limit: maxSearched })),
  ]);
  const ids = new Set(lists.flatMap(({ data }) => data.map(({ request_id: id }) => id)));
  const found = [...ids].filter((id) => id.startsWith(`req_${part}`) || id.endsWith(part));
  const [only, another] = found;
  if (only === undefined)
    throw new Error(
      `No request in progress or among the newest ${maxSearched} has an id with ${part} at its beginning or end. Enter all of it.`,
    );
  if (another !== undefined)
    throw new Error(`Several requests have ${part} in their ids. Enter more digits: ${found.join(', ')}`);
  return only;
}
