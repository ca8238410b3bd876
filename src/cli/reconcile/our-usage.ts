import type { PresentedRecord } from '../../http/present/record.ts';
import type { AttemptResult } from '../../domain/money/consumption.ts';
import { parseUsd } from '../../shared/money.ts';
import { readPages } from '../admin-client.ts';
import type { Calendar } from './calendar.ts';
import { ByDayAndModel, addSums, noSums } from './quantities.ts';
import type { Sums } from './quantities.ts';

/** How long before the first day a request may have arrived whose attempts lie in it, in milliseconds: a day. */
const longestRequestMs = 86_400_000;

/** How many names of upstreams are kept, to suggest one for a misspelt name. */
const maxUpstreams = 1_000;

/** The results of attempts that sent nothing. */
const unsent: ReadonlySet<AttemptResult> = new Set(['unreachable', 'stale']);

/** The results of attempts that the provider answered with a refusal or an error instead of text. */
const refused: ReadonlySet<AttemptResult> = new Set([
  'refused',
  'rate_limited',
  'overloaded',
  'auth',
  'unserved',
]);

/** What our records say of the attempts that began on a day, at a model by its name at the upstream. */
export interface OurLine {
  /** The attempts whose usage the provider reported. */
  readonly sums: Sums;
  /** The part of it that ended on a later day. */
  readonly endedLater: Sums;
  /** The attempts that began on an earlier day and ended on this one. */
  readonly beganEarlier: Sums;
  /** Attempts without usage that the provider refused or failed before any text. */
  refused: number;
  /** Attempts without usage of which the provider may have charged something: broken off, timed out, or not counted. */
  withoutUsage: number;
  /** What keys were charged for answers of this line, in nano-USD. */
  chargedNanos: bigint;
}

/** What our records say of one upstream. */
export interface OurUsage {
  readonly lines: ByDayAndModel<OurLine>;
  /** The records that were read, of any upstream. */
  readonly records: number;
  /** The names of the upstreams in them, or some of them. */
  readonly upstreams: readonly string[];
  /** When the oldest of them was begun, in ISO 8601; `null` without any. */
  readonly oldest: string | null;
  /** Requests of this upstream that are still running. */
  readonly running: number;
  /** Requests of this upstream whose end is not known, because their process died. */
  readonly lost: number;
  /** Requests passed through to this upstream, whose usage is not read. */
  readonly passedThrough: number;
}

/** The days that are compared: `to` is not included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** A line without attempts. */
export function noLine(): OurLine {
  return {
    sums: noSums(),
    endedLater: noSums(),
    beganEarlier: noSums(),
    refused: 0,
    withoutUsage: 0,
    chargedNanos: 0n,
  };
}

/** Adds up the attempts at one upstream that began within some days, in the gateway's records. */
export class OurUsageReader {
  readonly #sums = {
    lines: new ByDayAndModel(noLine),
    records: 0,
    oldest: null as string | null,
    running: 0,
    lost: 0,
    passedThrough: 0,
  };
  readonly #upstreams = new Set<string>();
  readonly #upstream: string;
  readonly #range: DayRange;
  readonly #calendar: Calendar;

  constructor(upstream: string, range: DayRange, calendar: Calendar) {
    this.#upstream = upstream;
    this.#range = range;
    this.#calendar = calendar;
  }

  /** Adds a record. */
  add(record: PresentedRecord): void {
    const found = this.#sums;
    found.records++;
    if (found.oldest === null || record.created_at < found.oldest) found.oldest = record.created_at;
    const createdMs = Date.parse(record.created_at);
    const isOurs = record.upstream === this.#upstream && this.#isInRange(this.#calendar.dayOf(createdMs));
    if (record.protocol === 'passthrough') {
      if (isOurs) found.passedThrough++;
      return;
    }
    if (isOurs && record.outcome === null) found.running++;
    if (isOurs && record.outcome === 'lost') found.lost++;
    // Of two attempts that ran beside each other, the one that was stopped may have begun last, even at the same upstream.
    const answering = record.attempts.findLast(
      ({ upstream, result }) => upstream === record.upstream && result !== 'hedge_lost',
    );
    for (const attempt of record.attempts) {
      if (this.#upstreams.size < maxUpstreams) this.#upstreams.add(attempt.upstream);
      if (attempt.upstream !== this.#upstream) continue;
      const chargedNanos = attempt === answering ? BigInt(parseUsd(record.charge) ?? 0) : 0n;
      this.#addAttempt(attempt, createdMs, chargedNanos);
    }
  }

  usage(): OurUsage {
    return { ...this.#sums, upstreams: [...this.#upstreams] };
  }

  #addAttempt(attempt: PresentedRecord['attempts'][number], createdMs: number, chargedNanos: bigint): void {
    const { model, result, started_ms: startedMs, duration_ms: durationMs, usage } = attempt;
    const beganMs = createdMs + (startedMs ?? 0);
    const began = this.#calendar.dayOf(beganMs);
    const ended = this.#calendar.dayOf(beganMs + durationMs);
    const line = this.#isInRange(began) ? this.#sums.lines.at(began, model) : null;
    if (line !== null) line.chargedNanos += chargedNanos;
    if (usage === null) {
      if (line === null || unsent.has(result)) return;
      if (refused.has(result)) line.refused++;
      else line.withoutUsage++;
      return;
    }
    const sums: Sums = {
      requests: 1,
      input: usage.input_tokens,
      cached: usage.cached_input_tokens,
      cacheWrite: usage.cache_write_tokens,
      output: usage.output_tokens,
    };
    if (line !== null) addSums(line.sums, sums);
    if (began === ended) return;
    if (line !== null) addSums(line.endedLater, sums);
    if (this.#isInRange(ended)) addSums(this.#sums.lines.at(ended, model).beganEarlier, sums);
  }

  #isInRange(day: string): boolean {
    return day >= this.#range.from && day < this.#range.to;
  }
}

/** Reads our records of some days, page by page, and adds up the attempts at one upstream. */
export async function readOurUsage(
  upstream: string,
  range: DayRange,
  calendar: Calendar,
  showProgress: (text: string) => void,
): Promise<OurUsage> {
  const reader = new OurUsageReader(upstream, range, calendar);
  const from = new Date(calendar.startOf(range.from) - longestRequestMs).toISOString();
  const to = new Date(calendar.startOf(range.to)).toISOString();
  const query = new URLSearchParams({ from, to }).toString();
  let read = 0;
  for await (const data of readPages<PresentedRecord>('/admin/records', query)) {
    for (const record of data) reader.add(record);
    read += data.length;
    showProgress(`${read} records read`);
  }
  return reader.usage();
}
