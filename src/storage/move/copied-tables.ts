/**
 * The tables that are copied when a database moves to another engine, each behind those that its rows refer to. The columns
 * are those that both databases have.
 */
export const copiedTables = [
  'api_keys',
  'old_secrets',
  'accounts',
  'records',
  'ledger',
  'ledger_seals',
  'ledger_heads',
  'ledger_roots',
  'statement_keys',
  'ledger_folds',
  'folded_credits',
  'record_removals',
  // Before the settings of events: levels that budgets have reached are no news to the target.
  'budgets',
  'event_settings',
  'outbox',
  'webhook_deliveries',
  'upstream_outages',
  'usage_hours',
  'token_use',
  'refusals',
] as const;

/** Tables of the source that are not copied, and why. */
export const tablesLeftOut: ReadonlyMap<string, string> = new Map([
  ['migrations', 'each engine has steps of its own'],
  ['owners', 'leases of processes that have ended'],
  ['open_requests', 'it is empty: every open request was settled or closed before'],
  ['upstream_outage_nodes', 'what processes that have ended saw of upstreams'],
  ['usage_rollups', 'they are sums of the hours, and made again'],
  ['usage_periods', 'it says what is rolled up: nothing is, after the move'],
  ['ledger_root_work', 'a count by which processes notice each other while they make a root'],
  ['moved_to', 'the mark of an earlier copy, which is of the file alone'],
]);
