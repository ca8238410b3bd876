import type { LimitsView, LimiterView } from '../domain/ports/upstream-limiters.ts';
import { sum, sumOfLimits } from './worker-sums.ts';

/** How a limiter is used by all workers together, by the models of the first one; `null` without any. */
export function joinLimiters(all: readonly LimiterView[]): LimiterView | null {
  const [first] = all;
  if (first === undefined) return null;
  return {
    ...first,
    ...joinLimits(all),
    models: first.models.map(({ model }) => {
      const same = all.flatMap(({ models }) => models.find((other) => other.model === model) ?? []);
      return Object.assign(joinLimits(same), { model });
    }),
    pauses: longestOf(all.flatMap(({ pauses }) => pauses)),
  };
}

function joinLimits(all: readonly LimitsView[]): LimitsView {
  const hasLearned = all.some(({ learnedInFlight }) => learnedInFlight !== null);
  return {
    inFlight: sum(all.map(({ inFlight }) => inFlight)),
    maxInFlight: sumOfLimits(all.map(({ maxInFlight }) => maxInFlight)),
    startsLeft: sumOfLimits(all.map(({ startsLeft }) => startsLeft)),
    tokensLeft: sumOfLimits(all.map(({ tokensLeft }) => tokensLeft)),
    learned: joinLearned(all),
    learnedInFlight: hasLearned
      ? sumOfLimits(all.map(({ learnedInFlight, maxInFlight }) => learnedInFlight ?? maxInFlight))
      : null,
    pausedMs: Math.max(...all.map(({ pausedMs }) => pausedMs)),
    waiting: sum(all.map(({ waiting }) => waiting)),
    expectedMs: Math.max(...all.map(({ expectedMs }) => expectedMs)),
  };
}

/** The longest pause of each model. */
function longestOf(pauses: LimiterView['pauses']): LimiterView['pauses'] {
  const sorted = pauses.toSorted((one, other) => one.pausedMs - other.pausedMs);
  return [...new Map(sorted.map((pause) => [pause.model, pause])).values()];
}

/** A limit that an upstream reports is one of all workers together: the smallest rest is nearest to what it has counted. */
function joinLearned(all: readonly LimitsView[]): LimitsView['learned'] {
  const least = new Map<string, LimitsView['learned'][number]>();
  for (const limit of all.flatMap(({ learned }) => learned))
    if (limit.left < (least.get(limit.name)?.left ?? Number.POSITIVE_INFINITY)) least.set(limit.name, limit);
  return [...least.values()];
}
