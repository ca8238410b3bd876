import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Asked } from '../../api/use-loaded.ts';
import { Fault } from '../../widgets/fault.ts';
import { formatCount } from '../../widgets/format.ts';
import { BudgetBar } from './budget-bar.ts';
import type { Group, Page } from './types.ts';

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
          There is no group. Keys that share a budget or slots are put into one of the section ${' '}<code
            >groups</code
          >
          of the config.
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
