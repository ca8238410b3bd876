import type { BudgetUse } from '../../domain/budgets/budget.ts';
import { formatUsd } from '../../shared/money.ts';
import { isoTime } from './iso-time.ts';

const thousandth = 1_000;

/** A budget as JSON, in USD, with its current period. */
export function presentBudget({
  budget,
  limitNanos,
  spentNanos,
  heldNanos,
  warnedAt,
  startMs,
  endMs,
}: BudgetUse) {
  const { amountNanos, per, timeZone, warnAt, raise } = budget;
  return {
    amount: formatUsd(amountNanos),
    per,
    time_zone: timeZone,
    warn_at: warnAt.map(presentPart),
    raise: raise && { amount: formatUsd(raise.nanos), until: isoTime(raise.untilMs) },
    available: formatUsd(limitNanos - spentNanos - heldNanos),
    held: formatUsd(heldNanos),
    spent: formatUsd(spentNanos),
    warned_at: warnedAt === null ? null : presentPart(warnedAt),
    since: isoTime(startMs),
    refills_at: isoTime(endMs),
  };
}

function presentPart(thousandths: number): string {
  return String(thousandths / thousandth);
}
