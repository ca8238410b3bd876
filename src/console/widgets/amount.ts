import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatAmount, shortAmount } from './format.ts';

/** An amount in USD to four significant digits; where that leaves some out, all of them are its title. */
export function amountOf(usd: string): VNode | string {
  const exact = formatAmount(usd);
  const short = shortAmount(usd);
  return short === exact ? exact : html`<data value=${usd} title=${exact}>${short}</data>`;
}
