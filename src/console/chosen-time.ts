/** How long the times are that can be chosen by a name, up to now in milliseconds; `today` begins at midnight. */
const lengths = {
  '15m': 900_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  today: null,
  '7d': 7 * 86_400_000,
  '30d': 30 * 86_400_000,
} as const;

export type TimeName = keyof typeof lengths;

export const timeTitles: Readonly<Record<TimeName, string>> = {
  '15m': 'Last 15 minutes',
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  today: 'Today',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
};

/** A time with two ends, in ISO 8601. */
export interface Bounds {
  readonly from: string;
  readonly to: string;
}

/** What an address says of the time: a name, which goes on with the clock, or two ends. */
export interface ChosenTime {
  readonly name: TimeName | null;
  /** The ends that were given; `null` for a name. */
  readonly given: Bounds | null;
}

/** Reads the time of an address; one that it lacks, or that can't be read, is the usual one. */
export function readTime(query: URLSearchParams, names: readonly TimeName[], usual: TimeName): ChosenTime {
  const [from, to] = [readInstant(query.get('from')), readInstant(query.get('to'))];
  if (from !== null && to !== null && from < to) return { name: null, given: { from, to } };
  return { name: names.find((name) => name === query.get('time')) ?? usual, given: null };
}

/** The two ends of a time as it is now. */
export function boundsOf({ name, given }: ChosenTime, nowMs: number): Bounds {
  if (given !== null) return given;
  const length = name === null ? null : lengths[name];
  const fromMs = length === null ? new Date(nowMs).setHours(0, 0, 0, 0) : nowMs - length;
  return { from: new Date(fromMs).toISOString(), to: new Date(nowMs).toISOString() };
}

/** A time as the parameters of an address. */
export function timeParameters({ name, given }: ChosenTime): Readonly<Record<string, string | null>> {
  return { time: name, from: given?.from ?? null, to: given?.to ?? null };
}

function readInstant(text: string | null): string | null {
  const atMs = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(atMs) ? null : new Date(atMs).toISOString();
}
