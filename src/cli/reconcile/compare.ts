import { nextDay } from './calendar.ts';
import { noLine } from './our-usage.ts';
import type { DayRange, OurUsage, OurLine } from './our-usage.ts';
import { addSums, noSums } from './quantities.ts';
import type { Quantity, Sums } from './quantities.ts';
import type { TheirUsage } from './read-export.ts';

/** One quantity of a line, on both sides. */
interface Comparison {
  readonly quantity: Quantity;
  readonly theirs: number;
  readonly ours: number;
  readonly agrees: boolean;
}

/** A day and a model, or all days of a model, on both sides. */
export interface ReconciledLine {
  /** `null` for all days. */
  readonly day: string | null;
  readonly model: string;
  /** Which side has the line at all. */
  readonly side: 'both' | 'theirs' | 'ours';
  readonly comparisons: readonly Comparison[];
  readonly agrees: boolean;
  /** Attempts without usage: refused by the provider, and those of which it may have charged something. */
  readonly refused: number;
  readonly withoutUsage: number;
  /** What the provider charges, and what keys were charged, in nano-USD. */
  readonly costNanos: bigint;
  readonly chargedNanos: bigint;
}

/** What the comparison has found. */
export interface Reconciliation {
  /** By day and model, then the models over all days. */
  readonly lines: readonly ReconciledLine[];
  /** Rows of the export that are outside of the days. */
  readonly outside: number;
}

/** One model's part of a line. */
interface BothSides {
  theirs: Sums | null;
  ours: OurLine | null;
  costNanos: bigint;
}

/**
 * Compares the sums of each day and model, and of each model over all days. They agree if they differ by no more than a
 * share of the larger one. The provider may count an attempt that ran over midnight on either day, and may or may not count
 * as requests what it refused or broke off: neither is a difference.
 */
export function compareUsage(
  theirs: TheirUsage,
  ours: OurUsage,
  range: DayRange,
  tolerance: number,
): Reconciliation {
  const days = new Map<string, BothSides>();
  const models = new Map<string, BothSides>();
  let outside = 0;
  const sidesOf = (day: string, model: string): BothSides => {
    const key = JSON.stringify([day, model]);
    const sides = days.get(key) ?? noSides();
    days.set(key, sides);
    return sides;
  };
  for (const [day, model, { sums, costNanos }] of theirs.lines.all()) {
    if (day < range.from || day >= range.to) {
      outside++;
      continue;
    }
    Object.assign(sidesOf(day, model), { theirs: sums, costNanos });
  }
  for (const [day, model, line] of ours.lines.all()) sidesOf(day, model).ours = line;
  const lines: ReconciledLine[] = [];
  for (const [key, sides] of [...days].toSorted(byKey)) {
    const [day, model] = JSON.parse(key) as [string, string];
    const whole = models.get(model) ?? noSides();
    models.set(model, whole);
    addDay(whole, day, sides, range);
    lines.push(compareSides(day, model, sides, theirs.compared, tolerance));
  }
  const wholes = [...models].map(([model, whole]) =>
    compareSides(null, model, whole, theirs.compared, tolerance),
  );
  return { lines: [...lines, ...wholes].filter(isSomething), outside };
}

function noSides(): BothSides {
  return { theirs: null, ours: null, costNanos: 0n };
}

function byKey([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}

/** Adds a day of a model to all of its days. Midnights between them don't matter. */
function addDay(
  whole: BothSides,
  day: string,
  { theirs, ours, costNanos }: BothSides,
  range: DayRange,
): void {
  whole.costNanos += costNanos;
  if (theirs !== null) addSums((whole.theirs ??= noSums()), theirs);
  if (ours === null) return;
  const line = (whole.ours ??= noLine());
  addSums(line.sums, ours.sums);
  if (day === range.from) addSums(line.beganEarlier, ours.beganEarlier);
  if (nextDay(day) === range.to) addSums(line.endedLater, ours.endedLater);
  line.refused += ours.refused;
  line.withoutUsage += ours.withoutUsage;
  line.chargedNanos += ours.chargedNanos;
}

function compareSides(
  day: string | null,
  model: string,
  { theirs, ours, costNanos }: BothSides,
  compared: readonly Quantity[],
  tolerance: number,
): ReconciledLine {
  const { refused = 0, withoutUsage = 0, chargedNanos = 0n } = ours ?? {};
  const comparisons = compared.map((quantity): Comparison => {
    const [their, our] = [theirs?.[quantity] ?? 0, ours?.sums[quantity] ?? 0];
    const uncounted = quantity === 'requests' ? refused + withoutUsage : 0;
    const least = our - (ours?.endedLater[quantity] ?? 0);
    const most = our + (ours?.beganEarlier[quantity] ?? 0) + uncounted;
    const distance = Math.max(0, least - their, their - most);
    return { quantity, theirs: their, ours: our, agrees: distance <= tolerance * Math.max(their, our) };
  });
  return {
    day,
    model,
    side: theirs === null ? 'ours' : ours === null ? 'theirs' : 'both',
    comparisons,
    agrees: comparisons.every(({ agrees }) => agrees),
    refused,
    withoutUsage,
    costNanos,
    chargedNanos,
  };
}

/** Whether a line says anything: some have only attempts from another day. */
function isSomething({ comparisons, refused, withoutUsage, costNanos }: ReconciledLine): boolean {
  const isCounted = comparisons.some(({ theirs, ours }) => theirs > 0 || ours > 0);
  return isCounted || refused > 0 || withoutUsage > 0 || costNanos !== 0n;
}
