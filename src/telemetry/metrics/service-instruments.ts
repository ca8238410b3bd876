import { inSeconds } from './figures.ts';
import type { Figures } from './figures.ts';
import type { Constructors } from './series.ts';

/** The state of the service itself: its listeners, its log, the ledger, the database and what waits in it. */
export function serviceInstruments(constructors: Constructors, figures: Figures) {
  const instruments = {
    ...processInstruments(constructors, figures),
    ...ledgerInstruments(constructors, figures),
    ...eventInstruments(constructors, figures),
  };
  topFigures(figures);
  databaseFigures(figures);
  return instruments;
}

/** What the process does beside requests. */
function processInstruments({ counter, counterBy, gauge }: Constructors, { counted }: Figures) {
  const instruments = {
    holdsExpired: counter(
      'textgate_holds_expired_total',
      'Open records without a running request that were closed and their holds released.',
    ),
    configReloads: counterBy(
      ['result'],
      'textgate_config_reloads_total',
      'Attempts to reload the config or the TLS certificate, by result.',
    ),
    certificateEnd: gauge(
      'textgate_tls_certificate_not_after_seconds',
      'When the TLS certificate of the listener for clients ends, in seconds since 1970; without TLS there is no such series.',
      'min',
    ),
    connectionsRefused: counterBy(
      ['reason'],
      'textgate_connections_refused_total',
      'Connections that a listener refused or closed for lack of room, or because TLS failed, by reason.',
    ),
    requestsRefused: counterBy(
      ['reason'],
      'textgate_edge_refusals_total',
      'Requests that a listener refused before any route, because of their form, size or time, by reason.',
    ),
  };
  counted(
    'textgate_log_lines_dropped_total',
    'Log lines lost because their destination failed or was too slow.',
    ({ logLinesDropped }) => logLinesDropped(),
  );
  return instruments;
}

/**
 * Whether the ledger is right, and what is kept beside it. The figures of a shared database are those of the one process that
 * audits it: the others have none, and the sum is that of one.
 */
function ledgerInstruments({ counter }: Constructors, { figure }: Figures) {
  figure(
    'textgate_holds_outstanding',
    'Open consumption records, each of which holds money.',
    'sum',
    ({ ledgerFigures }) => ledgerFigures()?.openHolds ?? null,
  );
  figure(
    'textgate_ledger_lag_seconds',
    'Age of the oldest settlement that waits for the database; 0 when none waits.',
    'max',
    ({ settlementLagMs }) => inSeconds(settlementLagMs()),
  );
  figure(
    'textgate_ledger_imbalance_nanos',
    'Difference between accounts and ledger, in billionths of a USD. Anything but 0 is a fault; NaN before the first audit and after one that failed.',
    'sum',
    ({ ledgerFigures }) => {
      const figures = ledgerFigures();
      // Without figures there is no series: NaN would say that an audit has failed, and count in sums.
      return figures === null ? null : (figures.imbalanceNanos ?? Number.NaN);
    },
  );
  // While the duty to make roots changes hands, two processes show one.
  figure(
    'textgate_ledger_root_number',
    'Number of the newest root over the ledger, made every hour; absent before the first one. A number that falls is that of a database that was restored.',
    'max',
    ({ ledgerRoot }) => ledgerRoot()?.number ?? null,
  );
  figure(
    'textgate_ledger_root_age_seconds',
    'Age of the newest root over the ledger; absent before the first one.',
    'min',
    ({ ledgerRoot }) => inSeconds(ledgerRoot()?.ageMs),
  );
  const recordsRemoved = counter(
    'textgate_records_removed_total',
    'Records of requests that were removed because they were old.',
  );
  figure(
    'textgate_oldest_record_age_seconds',
    'Age of the oldest record of a request that is kept; absent without one.',
    'sum',
    ({ oldestRecordAgeMs }) => inSeconds(oldestRecordAgeMs()),
  );
  figure(
    'textgate_keys_low_balance',
    'Active keys whose balance is below their lowBalance, or else below limits.lowBalance.',
    'sum',
    ({ ledgerFigures }) => ledgerFigures()?.lowBalances ?? null,
  );
  figure(
    'textgate_budgets_warned',
    'Budgets of keys and groups that have reached a warning level in their current period.',
    'sum',
    ({ ledgerFigures }) => ledgerFigures()?.warnedBudgets ?? null,
  );
  return { recordsRemoved };
}

/** What was charged most today. When the duty to read it moves, two processes may show the same key for a minute. */
function topFigures({ figuresBy }: Figures): void {
  figuresBy(
    ['key_id', 'key_name'],
    'textgate_top_keys_charged_today_nanos',
    'Charges of a key since midnight UTC, in billionths of a USD; only the keys that were charged most have one, as many as metrics.topKeys.',
    'max',
    ({ topKeys }) =>
      topKeys().map(({ keyId, keyName, chargeNanos }) => ({
        labels: { key_id: keyId, key_name: keyName },
        value: Number(chargeNanos),
      })),
  );
  figuresBy(
    ['group'],
    'textgate_top_groups_charged_today_nanos',
    'Charges of a group of keys since midnight UTC, in billionths of a USD; only the groups that were charged most have one, as many as metrics.topKeys.',
    'max',
    ({ topGroups }) =>
      topGroups().map(({ group, chargeNanos }) => ({ labels: { group }, value: Number(chargeNanos) })),
  );
}

/** Events and their deliveries to webhooks. */
function eventInstruments({ counterBy }: Constructors, { figure }: Figures) {
  const webhookDeliveries = counterBy(
    ['webhook', 'result'],
    'textgate_webhook_deliveries_total',
    'Attempts to deliver an event to a webhook, by result: delivered, failed, and dead for one that was the last.',
  );
  figure(
    'textgate_kept_answer_bytes',
    'Memory for the answers to requests with an Idempotency-Key, while they run and for resume.replay afterwards.',
    'sum',
    ({ keptAnswerBytes }) => keptAnswerBytes(),
  );
  figure(
    'textgate_outbox_oldest_age_seconds',
    'Age of the oldest event that waits for its delivery; 0 when none waits, absent without webhooks.',
    'sum',
    ({ oldestEventAgeMs }) => inSeconds(oldestEventAgeMs()),
  );
  return { webhookDeliveries };
}

/** Whether the database can be used, and what it takes. */
function databaseFigures({ figure }: Figures): void {
  figure(
    'textgate_database_usable',
    'Whether the database takes writes and its file is the one that was opened, and undamaged: 1; else 0, and new requests are refused.',
    'min',
    ({ isDatabaseUsable }) => Number(isDatabaseUsable()),
  );
  figure(
    'textgate_database_log_bytes',
    'Size of the write-ahead log of the SQLite database; absent with PostgreSQL and in memory.',
    'sum',
    ({ databaseLogBytes }) => databaseLogBytes(),
  );
}
