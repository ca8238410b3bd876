/**
 * The names of pages that became sections of others, or moved, and where their texts are now: paths without `.md` below
 * the documentation, with an anchor where the page has more. Links and bookmarks that were kept still lead to the text.
 */
export const movedPages: ReadonlyMap<string, string> = new Map([
  ['operators/addresses', 'operators/network#client-addresses'],
  ['operators/budgets', 'operators/money#budgets'],
  ['operators/edge', 'operators/network#deadlines-and-sizes'],
  ['operators/environment', 'operators/config#environment-variables'],
  ['operators/health', 'operators/processes#readiness'],
  ['operators/listeners', 'operators/network#connection-limits'],
  ['operators/logs', 'operators/monitoring#logs'],
  ['operators/metrics', 'operators/monitoring#all-metrics'],
  ['operators/operating', '#operators-you-run-a-gateway'],
  ['operators/outbound', 'operators/upstreams#connections-to-upstreams'],
  ['operators/performance', 'contributors/performance'],
  ['operators/proxies', 'operators/network'],
  ['operators/records', 'operators/storage#old-records'],
  ['operators/rooms', 'operators/upstream-limits'],
  ['operators/scorecard', 'contributors/scorecard'],
  ['operators/shadow', 'operators/routing#shadow-traffic'],
  ['operators/sidecar', 'operators/container#beside-one-app'],
  ['operators/sizing', 'operators/install#sizing'],
  ['operators/status', 'operators/processes#status'],
  ['operators/usage', 'operators/money#usage'],
]);
