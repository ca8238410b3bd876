import { z } from 'zod';
import type { RecordFilter } from '../../domain/money/consumption.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Refusals } from '../../domain/ports/refusals.ts';
import { groupFailures } from '../../operations/group-failures.ts';
import type { FailureGroup } from '../../operations/group-failures.ts';
import { dayMs, dayOf } from '../../shared/duration.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { check, endsTooEarly } from '../checked-input.ts';
import { isoTime } from '../present/iso-time.ts';
import { filterOf, recordFilterFields } from './record-query.ts';
import type { RecordAdministration } from './records.ts';

/** The dependencies of a report on failures. */
export interface FailureReads extends RecordAdministration {
  readonly clock: Pick<Clock, 'now'>;
  readonly refusals: Pick<Refusals, 'ofDays'>;
}

/** The query of a report on failures: the filters of records. */
export const failureQuery = z.strictObject(recordFilterFields);

/** How long a report reaches back without a beginning, in milliseconds. */
const usualMs = dayMs;

/** How many sums of refusals by key are shown. */
const shownKeys = 100;

/** Reads the failures of some time as JSON, by their causes. */
export async function readFailures(input: unknown, reads: FailureReads) {
  const filter = await timedFilter(check(input, failureQuery), reads);
  if (isRefusal(filter)) return filter;
  const { groups, other, records, readToMs } = await groupFailures(reads, filter);
  return {
    from: isoTime(filter.from),
    to: isoTime(filter.to),
    is_complete: readToMs === null,
    read_from: isoTime(readToMs ?? filter.from),
    records,
    data: groups.map(presentGroup),
    other,
    refusals: await readRefusals(filter, reads),
  };
}

/** A filter with a time: by default the day before its end, which is now. */
async function timedFilter(query: z.output<typeof failureQuery> | Refusal, reads: FailureReads) {
  const filter = isRefusal(query) ? query : await filterOf(query, reads);
  if (isRefusal(filter)) return filter;
  const to = filter.to ?? reads.clock.now();
  const from = filter.from ?? to - usualMs;
  return to <= from ? endsTooEarly() : { ...filter, from, to };
}

function presentGroup(group: FailureGroup) {
  const { cause, remedy, result, upstream, model, status, code, words, requests, calls, keys } = group;
  return {
    cause,
    remedy,
    result,
    upstream,
    model,
    status,
    code,
    words,
    first_at: isoTime(group.firstMs),
    last_at: isoTime(group.lastMs),
    requests,
    calls,
    keys,
    outcomes: Object.fromEntries(group.outcomes),
    request_id: group.requestId,
  };
}

/** What limits have refused on the days of a time; `null` where a filter asks for more than a key: they are not known by it. */
async function readRefusals(
  { from, to, keyId, ...others }: RecordFilter & { readonly from: number; readonly to: number },
  { refusals, namesOf }: FailureReads,
) {
  if (Object.values(others).some((value) => value !== undefined)) return null;
  const days = { fromMs: dayOf(from), toMs: dayOf(to - 1) + dayMs };
  const { byLimit, byKey } = await refusals.ofDays({ ...days, keyId }, shownKeys);
  const names = await namesOf([...new Set(byKey.map(({ keyId: id }) => id))]);
  return {
    from: isoTime(days.fromMs),
    to: isoTime(days.toMs),
    by_limit: byLimit.map(({ limit, requests, keys }) => ({ limit, requests, keys })),
    by_key: byKey.map(({ keyId: id, limit, requests }) => ({
      key_id: id,
      key_name: names.get(id) ?? null,
      limit,
      requests,
    })),
  };
}
