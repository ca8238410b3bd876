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

/** The first value of a header, by its name in lower case. */
export type GetHeader = (name: string) => string | undefined;

/** A family of headers that reports one limit. */
interface Family {
  readonly name: string;
  readonly counts: CountedKind;
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string | null;
  readonly refill: 'steady' | 'window';
  /** What a reset without a unit is in: some send `60`, and mean milliseconds. */
  readonly unit: 'seconds' | 'milliseconds';
}

/** How exact a reset in whole seconds and one in milliseconds is, in milliseconds. */
const secondMs = 1_000;
const finestMs = 1;

/** Numbers from here on are seconds since 1970, and from there on milliseconds: as many seconds are 31 years. */
const leastEpochSeconds = 1_000_000_000;
const leastEpochMs = leastEpochSeconds * 1_000;

/** The largest number of a limit that is believed, and the longest reset, in milliseconds: a month. */
const maxLimit = 1e12;
const maxResetMs = 31 * 24 * 3_600_000;

const openAi = (kind: 'requests' | 'tokens'): Family => ({
  name: kind,
  counts: kind,
  limit: `x-ratelimit-limit-${kind}`,
  remaining: `x-ratelimit-remaining-${kind}`,
  reset: `x-ratelimit-reset-${kind}`,
  refill: 'steady',
  // OpenAI and Groq send units; Azure sends whole milliseconds without one.
  unit: 'milliseconds',
});

const anthropic = (kind: string, counts: CountedKind): Family => ({
  name: kind,
  counts,
  limit: `anthropic-ratelimit-${kind}-limit`,
  remaining: `anthropic-ratelimit-${kind}-remaining`,
  reset: `anthropic-ratelimit-${kind}-reset`,
  refill: 'steady',
  unit: 'seconds',
});

const perMinute = (name: string, counts: 'requests' | 'tokens'): Family => ({
  name: `${counts}-minute`,
  counts,
  limit: `x-ratelimit-limit-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
  reset: null,
  refill: 'window',
  unit: 'seconds',
});

const plain = (prefix: string): Family => ({
  name: 'requests',
  counts: 'requests',
  limit: `${prefix}-limit`,
  remaining: `${prefix}-remaining`,
  reset: `${prefix}-reset`,
  refill: 'window',
  unit: 'seconds',
});

/** The families of headers that providers send; of those with one name the first that an answer has counts. */
const families: readonly Family[] = [
  openAi('requests'),
  openAi('tokens'),
  anthropic('requests', 'requests'),
  anthropic('tokens', 'tokens'),
  anthropic('input-tokens', 'input'),
  anthropic('output-tokens', 'output'),
  perMinute('req-minute', 'requests'),
  perMinute('tokens-minute', 'tokens'),
  plain('x-ratelimit'),
  plain('ratelimit'),
];

/** The headers that may report a limit, and `date`, by which times of the upstream's clock are read. */
export const limitHeaderNames: ReadonlySet<string> = new Set([
  'date',
  ...families.flatMap(({ limit, remaining, reset }) => [
    limit,
    remaining,
    ...(reset === null ? [] : [reset]),
  ]),
]);

/**
 * Reads the limits that an answer reports; `null` without any. What is not a plausible number is left out: a limit that is
 * misread would hold up all requests. Moments are taken relative to the answer's own `date`, as clocks differ.
 */
export function readLimitHeaders(get: GetHeader): LimitReport | null {
  const found: ReportedLimit[] = [];
  for (const family of families) {
    if (found.some(({ name }) => name === family.name)) continue;
    const limit = readAmount(get(family.limit));
    const remaining = readAmount(get(family.remaining));
    if (limit === null || remaining === null || limit === 0) continue;
    const reset = family.reset === null ? null : readReset(get(family.reset), get('date'), family.unit);
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
function readReset(text: string | undefined, date: string | undefined, unit: Family['unit']): Reset | null {
  if (text === undefined) return null;
  if (/^\d{1,15}(\.\d+)?$/.test(text)) return readNumber(text, date, unit);
  return readDuration(text) ?? readMoment(text, date);
}

function readNumber(text: string, date: string | undefined, unit: Family['unit']): Reset | null {
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
