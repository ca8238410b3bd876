import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatAmount, formatTime, formatCount } from '../../widgets/format.ts';
import type { Asked } from '../../api/use-loaded.ts';
import { Fault } from '../../widgets/fault.ts';
import type { Budget, Group, Page } from './types.ts';

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

const decimals = 9;

/** An amount of the API in billionths of a dollar: a number in JavaScript would lose digits. */
function nanosOf(usd: string): bigint {
  const [dollars = '0', part = ''] = usd.replace('-', '').split('.', 2);
  const nanos = BigInt(dollars + part.padEnd(decimals, '0').slice(0, decimals));
  return usd.startsWith('-') ? -nanos : nanos;
}

/** The groups of the config, with what their keys share. */
export function GroupList({ asked }: { readonly asked: Asked<Page<Group>> }): VNode {
  const groups = asked.answer?.data;
  return html`
    <section>
      <h2>Groups</h2>
      <${Fault} text=${asked.error} />
      ${
        groups?.length === 0 &&
        html`<p class="empty">
          There is no group. Keys that share a budget or slots are put into one of
          ${' '}<code>groups</code>${' '} in the config.
        </p>`
      }
      ${
        groups !== undefined &&
        groups.length > 0 &&
        html`
          <ul class="cards">
            ${groups.map((group) => html`<${GroupCard} key=${group.name} group=${group} />`)}
          </ul>
        `
      }
    </section>
  `;
}

function GroupCard({ group: { name, concurrency, budget, in_flight: running } }: { group: Group }): VNode {
  return html`
    <li>
      <p><strong>${name}</strong></p>
      <p class="note">
        ${formatCount(running)}${concurrency !== null && ` of ${formatCount(concurrency)}`} in progress
      </p>
      <p>
        ${budget === null ? 'no budget' : html`<${BudgetBar} budget=${budget} of=${`the group ${name}`} />`}
      </p>
    </li>
  `;
}
