import { z } from 'zod';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Latencies } from '../../domain/ports/latencies.ts';
import { reportLatencies } from '../../operations/report-latencies.ts';
import type { Distribution, Quantiles } from '../../operations/report-latencies.ts';
import { dayMs } from '../../shared/duration.ts';
import { isRefusal } from '../../shared/errors.ts';
import { instant, storedText } from '../../shared/schema-values.ts';
import { check, endsTooEarly, entryCount } from '../checked-input.ts';
import { isoTime } from '../present/iso-time.ts';

/** The dependencies of a report on latencies. */
export interface LatencyReads extends Latencies {
  readonly clock: Pick<Clock, 'now'>;
}

const maxSlots = 100;
const usualSlots = 24;

/** How long a report reaches back without a beginning, in milliseconds. */
const usualMs = dayMs;

/** The query of a report on latencies. */
export const latencyQuery = z.strictObject({
  from: instant.optional(),
  to: instant.optional(),
  upstream: storedText.optional(),
  model: storedText.optional(),
  slots: entryCount(maxSlots, usualSlots),
});

/** Reads latencies by upstream and model as JSON. */
export async function readLatencies(input: unknown, reads: LatencyReads) {
  const query = check(input, latencyQuery);
  if (isRefusal(query)) return query;
  const { upstream, model, slots: slotCount, to: toMs = reads.clock.now() } = query;
  const { from: fromMs = toMs - usualMs } = query;
  if (toMs <= fromMs) return endsTooEarly();
  const { slots, pairs, other } = await reportLatencies(reads, { fromMs, toMs, upstream, model }, slotCount);
  return {
    from: isoTime(fromMs),
    to: isoTime(toMs),
    slots: slots.map((slot) => ({ from: isoTime(slot.fromMs), is_complete: slot.isWhole })),
    data: pairs.map((pair) => ({
      upstream: pair.upstream,
      model: pair.model,
      requests: pair.requests,
      first_text_ms: presentDistribution(pair.firstText),
      duration_ms: presentDistribution(pair.duration),
      slots: pair.slots.map(({ requests, firstText, duration }) => ({
        requests,
        first_text_ms: presentQuantiles(firstText),
        duration_ms: presentQuantiles(duration),
      })),
    })),
    other,
  };
}

function presentQuantiles({ requests, p50, p95, p99 }: Quantiles) {
  return { requests, p50, p95, p99 };
}

function presentDistribution({ buckets, ...quantiles }: Distribution) {
  return {
    ...presentQuantiles(quantiles),
    buckets: buckets.map(({ upToMs, requests }) => ({ up_to_ms: upToMs, requests })),
  };
}
