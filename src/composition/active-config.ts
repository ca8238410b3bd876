import type { LedgerMonitor } from '../background/monitor-ledger.ts';
import type { RecordRemover, RetentionSettings } from '../background/remove-old-records.ts';
import type { Config } from '../config/schema/schema.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import type { DeclaredKey } from '../domain/keys/declared-key.ts';
import type { Limits } from '../domain/limits.ts';
import type { Webhook } from '../domain/ports/webhooks.ts';
import type { Log } from '../telemetry/logger.ts';
import { defaultLimitsOf } from './limiter-services.ts';
import { retentionOf } from './record-remover.ts';
import type { StorageServices } from './storage-services.ts';
import type { EventServices } from './webhook-services.ts';

/** What process services read of the config in force. */
export interface ActiveConfig {
  /** The balance below which a key counts as low, in nano-USD. */
  readonly lowBalanceNanos: number;
  /** How long records are kept, and where old ones go. */
  readonly retention: RetentionSettings;
  /** The receivers of events. */
  readonly webhooks: readonly Webhook[];
  /** How long before the expiry of a key events come, in milliseconds. */
  readonly expiryNoticesMs: readonly number[];
  /** How long an upstream must be down, or up again, before an event comes, in milliseconds. */
  readonly upstreamDownMs: number;
  /** The limits of keys without limits of their own. */
  readonly defaultLimits: Limits;
  /** The keys that the config declares. */
  readonly declaredKeys: readonly DeclaredKey[];
  /** The circuit state of every configured upstream; one that asked for a pause counts as open. */
  upstreamStates(): Readonly<Record<string, UpstreamState>>;
  /** Each model on offer, with whether the circuit of at least one of its upstreams is closed. */
  modelAvailability(): readonly (readonly [model: string, isAvailable: boolean])[];
}

/** What is read while no config is in force yet. */
export function nothingActive({ limits, records, events }: Config): ActiveConfig {
  return {
    lowBalanceNanos: limits.lowBalance,
    retention: retentionOf(records),
    defaultLimits: defaultLimitsOf(limits),
    declaredKeys: [],
    webhooks: [],
    ...eventTimesOf(events),
    upstreamStates: () => ({}),
    modelAvailability: () => [],
  };
}

/** When events come that the process watches for. */
export function eventTimesOf({
  keyExpiring,
  upstreamDown,
}: Config['events']): Pick<ActiveConfig, 'expiryNoticesMs' | 'upstreamDownMs'> {
  return { expiryNoticesMs: [...new Set(keyExpiring)], upstreamDownMs: upstreamDown };
}

/** The work in the background that gauges are read from. */
interface ReadWork {
  readonly ledgerMonitor: Pick<LedgerMonitor, 'figures'>;
  readonly remover: Pick<RecordRemover, 'oldestRecordAgeMs'>;
  readonly events: Pick<EventServices, 'oldestAgeMs'>;
}

/** What gauges are read from. */
export function sourcesOf(
  active: () => ActiveConfig,
  { records }: StorageServices,
  log: Log,
  { ledgerMonitor, remover, events }: ReadWork,
) {
  return {
    upstreamStates: () => active().upstreamStates(),
    modelAvailability: () => active().modelAvailability(),
    settlementLagMs: () => records.lagMs(),
    logLinesDropped: () => log.droppedLines,
    ledgerFigures: () => ledgerMonitor.figures,
    oldestRecordAgeMs: () => remover.oldestRecordAgeMs(),
    oldestEventAgeMs: () => events.oldestAgeMs(),
  };
}
