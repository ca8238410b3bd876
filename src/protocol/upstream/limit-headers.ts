import { parseMoment } from '../../shared/parse-moment.ts';

/** What a limit of an upstream counts. */
type CountedKind = 'requests' | 'tokens' | 'input' | 'output';

/** A limit as an upstream's answer reports it. */
export interface ReportedLimit {
  /** The family of headers and the kind, by which reports of one limit belong together; `tokens` for most. */
  readonly name: string;
  readonly counts: CountedKind;
  /** The most that there can be left. */
  readonly limit: number;
  readonly remaining: number;
  /** In how many milliseconds all of it is there again; `null` where the upstream does not say. */
  readonly resetMs: number | null;
  /** How exact `resetMs` is, in milliseconds: it may be too small by that much. */
  readonly resolutionMs: number;
  /** `steady`: what was used comes back all the time; `window`: all of it comes back at the reset, and none before. */
  readonly refill: 'steady' | 'window';
}

/** The limits that one answer reports, at least one. */
export type LimitReport = readonly ReportedLimit[];

/** How exact a reset in whole seconds and one in milliseconds is, in milliseconds. */
const secondMs = 1_000;
const finestMs = 1;

/** Numbers from here on are seconds since 1970, and from there on milliseconds: as many seconds are 31 years. */
const leastEpochSeconds = 1_000_000_000;
const leastEpochMs = leastEpochSeconds * 1_000;

/** The largest number of a limit that is believed, and the longest reset, in milliseconds: a month. */
const maxLimit = 1e12;
const maxResetMs = 31 * 24 * 3_600_000;

/** What a reset without a unit is in. */
type Unit = 'seconds' | 'milliseconds';

/** The headers in which providers report a limit. */
function headerFamily(
  name: string,
  counts: CountedKind,
  headers: string,
  refill: ReportedLimit['refill'],
  unit: Unit | null,
) {
  const header = (what: string): string => headers.replace('*', what);
  const reset = unit === null ? null : { header: header('reset'), unit };
  return { name, counts, limit: header('limit'), remaining: header('remaining'), reset, refill };
}

/**
 * The families of headers that providers send: the limit's name and what it counts; their names, with `limit`, `remaining`
 * and `reset` in place of the star; how it refills; and the unit of a reset without one, `null` where there is no reset.
 * OpenAI and Groq send units, and Azure whole milliseconds without one. Of those with one name the first that an answer has
 * counts.
 */
const families = [
  headerFamily('requests', 'requests', 'x-ratelimit-*-requests', 'steady', 'milliseconds'),
  headerFamily('tokens', 'tokens', 'x-ratelimit-*-tokens', 'steady', 'milliseconds'),
  headerFamily('requests', 'requests', 'anthropic-ratelimit-requests-*', 'steady', 'seconds'),
  headerFamily('tokens', 'tokens', 'anthropic-ratelimit-tokens-*', 'steady', 'seconds'),
  headerFamily('input-tokens', 'input', 'anthropic-ratelimit-input-tokens-*', 'steady', 'seconds'),
  headerFamily('output-tokens', 'output', 'anthropic-ratelimit-output-tokens-*', 'steady', 'seconds'),
  headerFamily('requests-minute', 'requests', 'x-ratelimit-*-req-minute', 'window', null),
  headerFamily('tokens-minute', 'tokens', 'x-ratelimit-*-tokens-minute', 'window', null),
  headerFamily('requests', 'requests', 'x-ratelimit-*', 'window', 'seconds'),
  headerFamily('requests', 'requests', 'ratelimit-*', 'window', 'seconds'),
];

/**
 * Reads the limits that an answer reports; `null` without any. `get` returns the first value of a header, by its name in
 * lower case. What is not a plausible number is left out: a limit that is misread would hold up all requests. Moments are
 * taken relative to the answer's own `date`, as clocks differ.
 */
export function readLimitHeaders(get: (name: string) => string | undefined): LimitReport | null {
  const found: ReportedLimit[] = [];
  for (const family of families) {
    if (found.some(({ name }) => name === family.name)) continue;
    const limit = readAmount(get(family.limit));
    const remaining = readAmount(get(family.remaining));
    if (limit === null || remaining === null || limit === 0) continue;
    const reset =
      family.reset === null ? null : readReset(get(family.reset.header), get('date'), family.reset.unit);
    found.push({
      name: family.name,
      counts: family.counts,
      // Some allow bursts above their limit, and report them.
      limit: Math.max(limit, remaining),
      remaining,
      resetMs: reset === null ? null : Math.min(maxResetMs, reset.ms),
      resolutionMs: reset?.resolutionMs ?? secondMs,
      refill: reset === null ? 'window' : family.refill,
    });
  }
  return found.length === 0 ? null : found;
}

function readAmount(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,15}(\.\d+)?$/.test(text)) return null;
  const amount = Math.floor(Number(text));
  return amount <= maxLimit ? amount : null;
}

interface Reset {
  readonly ms: number;
  readonly resolutionMs: number;
}

/** A reset as a duration (`6m0s`, `59.7s`, `12ms`), as a number or moment since 1970, or as a moment of RFC 3339. */
function readReset(text: string | undefined, date: string | undefined, unit: Unit): Reset | null {
  if (text === undefined) return null;
  if (/^\d{1,15}(\.\d+)?$/.test(text)) return readNumber(text, date, unit);
  return readDuration(text) ?? readMoment(text, date);
}

function readNumber(text: string, date: string | undefined, unit: Unit): Reset | null {
  const value = Number(text);
  if (value >= leastEpochMs) return untilMoment(value, date);
  if (value >= leastEpochSeconds) return untilMoment(value * secondMs, date);
  if (unit === 'milliseconds') return { ms: value, resolutionMs: finestMs };
  return { ms: value * secondMs, resolutionMs: text.includes('.') ? finestMs : secondMs };
}

const unitsMs: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

function readDuration(text: string): Reset | null {
  if (!/^(\d{1,9}(\.\d+)?(ms|[dhms]))+$/.test(text)) return null;
  let ms = 0;
  for (const [, value, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g))
    ms += Number(value) * (unitsMs[unit] ?? 0);
  const isWhole = !text.includes('.') && !text.includes('ms');
  return { ms, resolutionMs: isWhole && ms > 0 ? secondMs : finestMs };
}

function readMoment(text: string, date: string | undefined): Reset | null {
  if (!/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d)$/.test(text)) return null;
  const atMs = parseMoment(text);
  return atMs === null ? null : untilMoment(atMs, date);
}

/** Both are by the upstream's clock; without a date of its own nothing is known of it. */
function untilMoment(atMs: number, date: string | undefined): Reset | null {
  const nowMs = date === undefined ? null : parseMoment(date);
  return nowMs === null ? null : { ms: Math.max(0, atMs - nowMs), resolutionMs: secondMs };
}
