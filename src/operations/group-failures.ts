import { readSentences } from '../domain/diagnosis/diagnose.ts';
import { isFailed, isUnanswered } from '../domain/money/consumption.ts';
import type { Attempt, ConsumptionRecord, Outcome, RecordFilter } from '../domain/money/consumption.ts';
import type { RecordPages } from '../domain/ports/records.ts';

/** How many records are read at once: a few milliseconds of the thread that serves requests. */
const recordsAtOnce = 100;

/** How far failures are read, and how many groups are made of them. */
interface FailureLimits {
  readonly maxRecords: number;
  /** How many groups are told apart; what is in further ones is counted together. */
  readonly maxGroups: number;
  /** How many of them are shown. */
  readonly shownGroups: number;
}

const failureLimits: FailureLimits = { maxRecords: 20_000, maxGroups: 2_000, shownGroups: 100 };

/** What tells groups apart. */
interface Kind {
  /** The result of a failed call; `null` where no call is at fault, as of a client that has left. */
  readonly result: string | null;
  /** What went wrong, as `doctor` says it; without the remedy, and `null` where the result says all. */
  readonly cause: string | null;
  readonly upstream: string;
  readonly model: string;
  /** The status and the code that the provider gave its error; without a call the code that the client got. */
  readonly status: number | null;
  readonly code: string | null;
}

/** One failed call, or one request that failed without one. */
interface Failed extends Kind {
  readonly remedy: string | null;
  /** The provider's own words, sanitised. */
  readonly words: string | null;
}

/** Failures of one kind. The words and the request are those of the newest one. */
export interface FailureGroup extends Failed {
  readonly requestId: string;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly requests: number;
  readonly calls: number;
  readonly keys: number;
  /** How the requests have ended for their clients, as another route may have answered. */
  readonly outcomes: ReadonlyMap<Outcome, number>;
}

/** The failures of some time. */
export interface FailureReport {
  /** Most requests first. */
  readonly groups: readonly FailureGroup[];
  /** What the groups that are not shown have: a request counts in each of them. */
  readonly other: { readonly groups: number; readonly requests: number };
  /** How many records were read. */
  readonly records: number;
  /** The time down to which failures were read, in milliseconds since 1970; `null` where all were. */
  readonly readToMs: number | null;
}

/** A group while it grows: newer records come first. */
interface Growing {
  readonly newest: ConsumptionRecord;
  readonly failed: Failed;
  readonly keys: Set<string>;
  readonly outcomes: Map<Outcome, number>;
  firstMs: number;
  requests: number;
  calls: number;
}

/** Groups the failures that a filter wants, newest first, as far as the limits go. */
export async function groupFailures(
  records: Pick<RecordPages, 'listRecords'>,
  filter: RecordFilter,
  { maxRecords, maxGroups, shownGroups }: FailureLimits = failureLimits,
): Promise<FailureReport> {
  const groups = new Map<string, Growing>();
  const left = { groups: 0, requests: 0 };
  let before: string | null = null;
  let [count, pages] = [0, 0];
  do {
    const page = await records.listRecords({ ...filter, hasFailed: true }, recordsAtOnce, before);
    pages++;
    for (const record of page?.records ?? []) {
      count++;
      left.requests += addRecord(record, groups, maxGroups);
    }
    before = page?.next ?? null;
    // A page of a filter that finds few has looked at as many as a page may: there may be hundreds of those.
  } while (before !== null && count < maxRecords && pages < 2 * Math.ceil(maxRecords / recordsAtOnce));
  const sorted = [...groups.values()].toSorted(
    (one, other) => other.requests - one.requests || other.newest.createdAtMs - one.newest.createdAtMs,
  );
  for (const { requests } of sorted.slice(shownGroups)) left.requests += requests;
  left.groups += Math.max(0, sorted.length - shownGroups);
  return {
    groups: sorted.slice(0, shownGroups).map(viewGroup),
    other: left,
    records: count,
    readToMs: before === null ? null : timeOf(before),
  };
}

/** The time with which the id of a request begins, behind `req_`: a page may have looked far without finding a record. */
function timeOf(requestId: string): number {
  return Number.parseInt(requestId.slice(4, 16), 16);
}

/** Adds what failed of a record to its groups; returns in how many further ones it is. */
function addRecord(record: ConsumptionRecord, groups: Map<string, Growing>, maxGroups: number): number {
  const seen = new Set<string>();
  let further = 0;
  for (const failed of failuresOf(record)) {
    const { result, cause, upstream, model, status, code } = failed;
    const name = JSON.stringify([result, cause, upstream, model, status, code]);
    const isNew = !groups.has(name);
    if (isNew && groups.size >= maxGroups) {
      if (!seen.has(name)) further++;
      seen.add(name);
      continue;
    }
    if (isNew) groups.set(name, emptyGroup(record, failed));
    const group = groups.get(name) as Growing;
    if (result !== null) group.calls++;
    if (seen.has(name)) continue;
    seen.add(name);
    group.requests++;
    group.firstMs = record.createdAtMs;
    group.keys.add(record.keyId);
    const { outcome } = record;
    if (outcome !== null) group.outcomes.set(outcome, (group.outcomes.get(outcome) ?? 0) + 1);
  }
  return further;
}

function emptyGroup(newest: ConsumptionRecord, failed: Failed): Growing {
  const { createdAtMs: firstMs } = newest;
  return { newest, failed, keys: new Set(), outcomes: new Map(), firstMs, requests: 0, calls: 0 };
}

function viewGroup({ newest, failed, keys, ...group }: Growing): FailureGroup {
  const { requestId, createdAtMs: lastMs } = newest;
  return { ...failed, ...group, requestId, lastMs, keys: keys.size };
}

/** The failed calls of a record; where there are none, its own failure, if it has one. */
function failuresOf({ attempts, model, upstream, failure, outcome }: ConsumptionRecord): readonly Failed[] {
  const calls = attempts.filter(({ result }) => isFailed(result));
  if (calls.length > 0) return calls.map((call) => failureOf(call, model));
  if (!isUnanswered(outcome)) return [];
  const { cause, advice: remedy } = readSentences(failure?.cause ?? null);
  return [
    {
      cause,
      remedy,
      result: null,
      upstream,
      model,
      status: null,
      code: failure?.code ?? outcome,
      words: null,
    },
  ];
}

function failureOf({ result, cause: said, upstream, upstreamError }: Attempt, model: string): Failed {
  const { status = null, code = null, message: words = null } = upstreamError ?? {};
  const { cause, advice: remedy } = readSentences(said);
  return { cause, remedy, result, upstream, model, status: status ?? statusIn(said), code, words };
}

/** The status of an answer without words, as its cause says it. */
function statusIn(cause: string | null): number | null {
  const [, status] = /\(status (\d{3})\)/.exec(cause ?? '') ?? [];
  return status === undefined ? null : Number(status);
}
