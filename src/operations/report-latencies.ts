import type { Latencies, LatencyCounts, LatencyQuery } from '../domain/ports/latencies.ts';
import { longestWithin, quantilesOf } from '../shared/time-bounds.ts';
import type { BoundCounts } from '../shared/time-bounds.ts';

/** How many records are counted for a report, in equal shares for its slots. */
const maxRecords = 500_000;

/** How many pairs of an upstream and a model are shown. */
const shownPairs = 50;

/** How many bounds are one bucket of a distribution: each ends about a fifth above the one before. */
const boundsPerBucket = 4;

/** How many times came, and how long they were, in milliseconds. The quantiles are known to 2.5 %. */
export interface Quantiles {
  readonly requests: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** The same with the distribution: how many were at most so long (`null`: of any length), and longer than the bucket before. */
export interface Distribution extends Quantiles {
  readonly buckets: readonly { readonly upToMs: number | null; readonly requests: number }[];
}

/** What an upstream took for a model, in all of a time and in each of its slots. */
interface PairLatencies {
  readonly upstream: string;
  readonly model: string;
  readonly requests: number;
  readonly firstText: Distribution;
  readonly duration: Distribution;
  /** In the order of the slots. */
  readonly slots: readonly {
    readonly requests: number;
    readonly firstText: Quantiles;
    readonly duration: Quantiles;
  }[];
}

/** A part of the time, and whether all of its records were counted, or only the newest. */
interface LatencySlot {
  readonly fromMs: number;
  readonly isWhole: boolean;
}

/** Latencies by upstream and model, most requests first, and what further pairs have. */
export interface LatencyReport {
  readonly slots: readonly LatencySlot[];
  readonly pairs: readonly PairLatencies[];
  readonly other: { readonly pairs: number; readonly requests: number };
}

/** Reports latencies of a time that is cut into equal slots. */
export async function reportLatencies(
  latencies: Latencies,
  { fromMs, toMs, ...filter }: LatencyQuery,
  slotCount: number,
): Promise<LatencyReport> {
  const startOf = (slot: number): number => fromMs + Math.floor(((toMs - fromMs) * slot) / slotCount);
  const slots: LatencySlot[] = [];
  const found = new Map<string, (LatencyCounts | null)[]>();
  for (let slot = 0; slot < slotCount; slot++) {
    const time = { fromMs: startOf(slot), toMs: startOf(slot + 1) };
    const share = Math.ceil(maxRecords / slotCount);
    const { counts, isWhole } = await latencies.countLatencies({ ...time, ...filter }, share);
    slots.push({ fromMs: time.fromMs, isWhole });
    for (const one of counts) {
      const name = JSON.stringify([one.upstream, one.model]);
      const ofPair = found.get(name) ?? Array.from({ length: slotCount }, () => null);
      ofPair[slot] = one;
      found.set(name, ofPair);
    }
  }
  const pairs = [...found.values()]
    .map(viewPair)
    .toSorted((one, other) => other.requests - one.requests || (one.upstream < other.upstream ? -1 : 1));
  const left = pairs.slice(shownPairs);
  const requests = left.reduce((sum, pair) => sum + pair.requests, 0);
  return { slots, pairs: pairs.slice(0, shownPairs), other: { pairs: left.length, requests } };
}

function viewPair(slots: readonly (LatencyCounts | null)[]): PairLatencies {
  const counted = slots.filter((slot) => slot !== null);
  const [first] = counted;
  return {
    upstream: first?.upstream ?? '',
    model: first?.model ?? '',
    requests: counted.reduce((sum, slot) => sum + slot.requests, 0),
    firstText: distributionOf(counted.flatMap(({ firstTexts }) => firstTexts)),
    duration: distributionOf(counted.flatMap(({ durations }) => durations)),
    slots: slots.map((slot) => ({
      requests: slot?.requests ?? 0,
      firstText: quantilesIn(slot?.firstTexts ?? []),
      duration: quantilesIn(slot?.durations ?? []),
    })),
  };
}

function quantilesIn(counts: BoundCounts): Quantiles {
  const quantile = quantilesOf(counts);
  const requests = counts.reduce((sum, [, times]) => sum + times, 0);
  return { requests, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) };
}

function distributionOf(counts: BoundCounts): Distribution {
  const buckets = new Map<number, number>();
  for (const [bound, times] of counts) {
    const bucket = Math.ceil(bound / boundsPerBucket);
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + times);
  }
  const sorted = [...buckets].toSorted(([one], [other]) => one - other);
  return {
    ...quantilesIn(counts),
    buckets: sorted.map(([bucket, requests]) => ({
      upToMs: longestWithin(bucket * boundsPerBucket),
      requests,
    })),
  };
}
