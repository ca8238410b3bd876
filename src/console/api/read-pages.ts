import { adminPath, callAdmin } from './admin-api.ts';

/** A page of a list of the admin API. */
interface Page<Row> {
  readonly data: readonly Row[];
  readonly next: string | null;
}

/** What was read of a list: all of it, or as many pages as were allowed. */
export interface Pages<Row> {
  readonly rows: readonly Row[];
  /** The cursor of the next page; `null` at the end. */
  readonly next: string | null;
}

interface Options {
  /** The name of the parameter that goes on behind a page. */
  readonly cursor: 'after' | 'before';
  readonly maxPages: number;
  readonly signal?: AbortSignal;
}

/** Reads pages of a list one after another, up to a bound: a page without rows may not be the last one. */
export async function readPages<Row>(
  route: string,
  parameters: Readonly<Record<string, string | number | null>>,
  { cursor, maxPages, signal }: Options,
): Promise<Pages<Row>> {
  const rows: Row[] = [];
  let next: string | null = parameters[cursor]?.toString() ?? null;
  for (let page = 0; page < maxPages; page++) {
    const path = adminPath(route, { ...parameters, [cursor]: next });
    const answer: Page<Row> = await callAdmin(path, signal === undefined ? {} : { signal });
    for (const row of answer.data) rows.push(row);
    next = answer.next;
    if (next === null) break;
  }
  return { rows, next };
}
