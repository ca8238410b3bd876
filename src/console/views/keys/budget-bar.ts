import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatAmount, formatTime } from '../../widgets/format.ts';
import { nanosOf } from './nanos.ts';
import type { Budget } from './types.ts';

const whole = 100;

/** How much of a budget is used in its current period, in percent; requests in progress count with what is held for them. */
export function usedPercent({ available, held, spent }: Budget): number {
  const used = nanosOf(spent) + nanosOf(held);
  const limit = used + nanosOf(available);
  if (limit <= 0n) return whole;
  return Math.min(whole, Number((used * BigInt(whole)) / limit));
}

interface Props {
  readonly budget: Budget;
  /** Whose budget it is, for screen readers. */
  readonly of: string;
}

/** How much of a budget is used, with a bar that is red once nothing is left, and when it is whole again. */
export function BudgetBar({ budget, of }: Props): VNode {
  const percent = usedPercent(budget);
  return html`
    <meter
      aria-label=${`Used part of the budget of ${of}`}
      min="0"
      low=${whole - 1}
      high=${whole - 1}
      optimum="0"
      max=${whole}
      value=${percent}
    ></meter>
    <span class="note">${writeUse(budget, percent)}</span>
  `;
}

function writeUse({ amount, per, raise, refills_at: refillsAt }: Budget, percent: number): string {
  const more =
    raise === null ? '' : ` and ${formatAmount(raise.amount)} more until ${formatTime(raise.until)}`;
  const end = percent < whole ? 'refills' : 'used up until';
  return `${percent} % of ${formatAmount(amount)} a ${per}${more}, ${end} ${formatTime(refillsAt)}`;
}
