import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { CountBars } from '../../widgets/count-bars.ts';
import { Outcome } from '../../widgets/outcome.ts';

/** How many requests ended in which way, most first. */
export function Endings({ endings }: { readonly endings: Readonly<Record<string, number>> }): VNode {
  const label = (name: string): VNode => html`<${Outcome} name=${name} />`;
  return html`<${CountBars} counts=${endings} label=${label} empty="No request has ended." />`;
}
