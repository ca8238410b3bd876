import { ShadowBook } from '../domain/shadows/shadow-book.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { UsageDrift } from '../domain/money/usage-drift.ts';
import type { DriftFigures } from '../domain/money/usage-drift.ts';
import { createSecondMeter } from '../pipeline/money/second-meter.ts';
import type { SecondMeter } from '../pipeline/money/second-meter.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { createTokenCounter } from '../tokens/token-counter.ts';
import type { ThreadedTokenCounter } from '../tokens/token-counter.ts';

/** What counts and compares in a process, beside its metrics. */
export interface Meters {
  /** Counts tokens where an upstream reported none. */
  readonly tokens: ThreadedTokenCounter;
  /** Counts samples of answers whose usage was reported. */
  readonly secondMeter: SecondMeter;
  /** The counts and budgets of shadow requests. */
  readonly shadowBook: ShadowBook;
}

/** Makes the meters of a process, and the source of the figures that compare them. */
export function composeMeters(
  clock: Clock,
  metrics: Metrics,
): Meters & { readonly usageDrift: () => readonly DriftFigures[] } {
  const tokens = createTokenCounter(clock);
  const drift = new UsageDrift();
  return {
    tokens,
    secondMeter: createSecondMeter(tokens, drift, (result) => metrics.usageSampled(result)),
    shadowBook: new ShadowBook(clock, metrics.shadows),
    usageDrift: () => drift.figures(),
  };
}
