import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Route } from '../../route.ts';
import { Overview } from './overview.ts';
import { Records } from './records/records.ts';
import { RequestLife } from './request/request-life.ts';

/** Who used what: sums over time, the requests behind them, and the life of one request. */
export function Usage({ route }: { readonly route: Route }): VNode {
  const { id, query } = route;
  if (id === null) return html`<${Overview} search=${query} />`;
  if (id === 'records') return html`<${Records} search=${query} />`;
  return html`<${RequestLife} key=${id} id=${id} />`;
}
