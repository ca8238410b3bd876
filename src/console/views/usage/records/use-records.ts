import type { PresentedRecord } from '../../../../http/present/record.ts';
import { readPages } from '../../../api/read-pages.ts';
import type { Asked } from '../../../api/use-loaded.ts';
import { useLoaded } from '../../../api/use-loaded.ts';
import { none } from '../groups.ts';
import type { Filters } from '../usage-query.ts';

/** How many requests a page has. */
const pageSize = 100;

/** With filters that the gateway does not know here, requests are looked through in pages of this size, up to this many. */
const searchedSize = 200;
const maxSearchedPages = 25;

export interface RecordPage {
  readonly rows: readonly PresentedRecord[];
  readonly next: string | null;
  /** How many requests were read for them. */
  readonly read: number;
}

interface Time {
  readonly from: string | null;
  readonly to: string | null;
}

/** Reads a page of requests: the newest, or those before a cursor. */
export function useRecords(filters: Filters, { from, to }: Time, before: string | null): Asked<RecordPage> {
  const { key, model, ...own } = filters;
  const isSearched = Object.values(own).some((value) => value !== null);
  const limit = isSearched ? searchedSize : pageSize;
  const parameters = { key, model, from, to, before, limit };
  return useLoaded(JSON.stringify([filters, from, to, before]), async (signal) => {
    const rows: PresentedRecord[] = [];
    let next = before;
    let read = 0;
    for (let page = 0; page < (isSearched ? maxSearchedPages : 1) && rows.length < pageSize; page++) {
      const found = await readPages<PresentedRecord>(
        'records',
        { ...parameters, before: next },
        { cursor: 'before', maxPages: 1, signal },
      );
      read += found.rows.length;
      rows.push(...found.rows.filter((row) => isWanted(row, own)));
      next = found.next;
      if (next === null) break;
    }
    return { rows, next, read };
  });
}

function isWanted(
  { group, upstream, outcome, tag }: PresentedRecord,
  wanted: Pick<Filters, 'group' | 'upstream' | 'outcome' | 'tag'>,
): boolean {
  return (
    (wanted.upstream === null || wanted.upstream === upstream) &&
    (wanted.outcome === null || wanted.outcome === outcome) &&
    (wanted.group === null || wanted.group === (group ?? none)) &&
    (wanted.tag === null || wanted.tag === (tag ?? none))
  );
}
