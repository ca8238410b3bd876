import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { CountBars } from '../../widgets/count-bars.ts';
import { Outcome, outcomeMood } from '../../widgets/outcome.ts';

/** How many requests ended in which way, most first. */
export function Endings({ endings }: { readonly endings: Readonly<Record<string, number>> }): VNode {
  return html`<${CountBars}
    counts=${endings}
    label=${outcomeOf}
    moodOf=${outcomeMood}
    empty="No request has ended."
  />`;
}

function outcomeOf(name: string): VNode {
  return html`<${Outcome} name=${name} />`;
}
