import { z } from 'zod';
import { outcomes } from '../domain/money/consumption.ts';
import { maxUsageRows, usageDimensions, usagePeriods } from '../domain/ports/usage.ts';
import type { Usage, UsageGroup, UsageQuery } from '../domain/ports/usage.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { instant, storedText, valueKinds } from '../shared/schema-values.ts';
import { check, endsTooEarly, entryCount, namesAmong, unknownCursor } from './checked-input.ts';
import { writeCsv } from './present/csv.ts';
import { presentList } from './present/list.ts';
import { presentUsage, usageColumns } from './present/usage.ts';
import type { NamedUsage } from './present/usage.ts';
import { sendCsv } from './answers/respond.ts';
import type { RouteAnswer } from './route-table.ts';
import { prefers } from './router.ts';
import { findUnknownKey } from './unknown-ids.ts';
import type { Request, Response } from './router.ts';

/** What reads of usage need. */
export interface UsageReads extends Usage {
  /** The names of some keys, by their ids. */
  readonly namesOf: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}

const hourMs = 3_600_000;

/** The last hour whose year has four digits: usage without an end has also what a node with a fast clock has begun. */
const endMs = Date.parse('9999-12-31T23:00:00Z');

const wholeHour = instant
  .refine(
    (milliseconds) => typeof milliseconds !== 'number' || milliseconds % hourMs === 0,
    'expected a whole hour in UTC, such as 2030-01-01T13:00:00Z, or a day: usage is added up by the hour',
  )
  .register(valueKinds, { kind: 'instant' });

/** The fields of a query that operators and holders share. */
const sharedFields = {
  from: wholeHour.optional(),
  to: wholeHour.optional(),
  model: storedText.optional(),
  outcome: z.enum(outcomes).optional(),
  tag: storedText.optional().describe('An empty one stands for the requests without a tag.'),
  limit: entryCount(maxUsageRows, maxUsageRows),
  after: storedText.optional(),
};

/** Groups, of which one may be a period. */
function groupsAmong(known: readonly UsageGroup[]) {
  return namesAmong(known).refine(
    (groups) => groups.filter((group) => usagePeriods.some((period) => period === group)).length <= 1,
    `expected one of ${usagePeriods.join(', ')}`,
  );
}

/** The query of an operator. */
export const usageQuery = z.strictObject({
  by: groupsAmong([...usagePeriods, ...usageDimensions]),
  ...sharedFields,
  key: storedText.optional(),
  group: storedText.optional().describe('An empty one stands for the requests of keys without a group.'),
  upstream: storedText.optional(),
});

/** The query of a key's holder, who is not told the upstreams. */
export const ownUsageQuery = z.strictObject({
  by: groupsAmong([...usagePeriods, 'model', 'outcome', 'tag']),
  ...sharedFields,
});

/** The input of usage: groups separated by commas, and times in ISO 8601, on whole hours. */
export type UsageInput = z.input<typeof usageQuery>;

/** A page of usage, and its groups in the order in which they were asked for. */
export interface NamedUsagePage {
  readonly by: readonly UsageGroup[];
  readonly rows: readonly NamedUsage[];
  readonly next: string | null;
}

/** Reads a page of the usage of all keys. */
export async function readUsage(input: unknown, reads: UsageReads): Promise<NamedUsagePage | Refusal> {
  const query = isRefusal(input) ? input : check(input, usageQuery);
  if (isRefusal(query)) return query;
  const { key, group, upstream, ...shared } = query;
  const unknown = await findUnknownKey(key, reads);
  if (unknown !== null) return unknown;
  return readPage(
    shared,
    { keyId: key, upstream, ...(group === undefined ? {} : { group: group || null }) },
    reads,
  );
}

/** Reads a page of the usage of one key, as its holder sees it. */
export async function readOwnUsage(
  input: unknown,
  keyId: string,
  reads: UsageReads,
): Promise<NamedUsagePage | Refusal> {
  const query = isRefusal(input) ? input : check(input, ownUsageQuery);
  return isRefusal(query) ? query : readPage(query, { keyId }, reads);
}

async function readPage(
  { by, from = 0, to = endMs, model, outcome, tag, limit, after }: z.output<typeof ownUsageQuery>,
  where: Pick<UsageQuery['where'], 'keyId' | 'group' | 'upstream'>,
  reads: UsageReads,
): Promise<NamedUsagePage | Refusal> {
  if (to <= from) return endsTooEarly();
  const filter = { ...where, model, outcome, ...(tag === undefined ? {} : { tag: tag || null }) };
  const page = await reads
    .usage({ by, fromMs: from, toMs: to, where: filter, limit, after: after ?? null })
    .catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error;
      const message = 'A sum is too large to be exact. Ask for a shorter time or for more groups.';
      return refuse('invalid_value', message);
    });
  if (page === null)
    return unknownCursor(
      'after',
      'expected the `next` of a page of this very query, with the same key, groups, filters and times',
    );
  if (isRefusal(page)) return page;
  const names = by.includes('key') ? await reads.namesOf([...new Set(page.rows.map(keyIdOf))]) : null;
  return {
    by,
    rows: page.rows.map((row) => ({ ...row, keyName: names?.get(keyIdOf(row)) ?? null })),
    next: page.next,
  };
}

function keyIdOf({ keyId = '' }: { readonly keyId?: string }): string {
  return keyId;
}

/** A page of usage as JSON. */
export function presentUsagePage({ by, rows, next }: NamedUsagePage) {
  const columns = usageColumns(by);
  return presentList(
    rows.map((row) => presentUsage(row, columns)),
    next,
  );
}

/** Answers with a page of usage as the request prefers: as JSON, or as CSV. */
export function answerUsage(
  request: Request,
  response: Response,
  page: NamedUsagePage | Refusal,
): RouteAnswer {
  if (isRefusal(page)) return page;
  if (!prefers(request, 'csv', 'json')) return presentUsagePage(page);
  sendCsv(response, writeCsv(page.rows, usageColumns(page.by)), page.next);
  return null;
}
