import type { RetentionSettings } from '../background/remove-old-records.ts';
import { groupsOf } from '../config/schema/groups-schema.ts';
import { limiterSettingsOf } from '../config/schema/limiter-schema.ts';
import type { Config } from '../config/schema/schema.ts';
import type { UpstreamState } from '../domain/upstreams/circuit.ts';
import type { Groups } from '../domain/limits/groups.ts';
import type { DeclaredKey } from '../domain/keys/declared-key.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { LimiterSettings, UpstreamLimiters } from '../domain/ports/upstream-limiters.ts';
import type { Webhook } from '../domain/ports/webhooks.ts';
import type { UpstreamReport } from '../operations/report-upstreams.ts';
import type { SigningKey } from '../shared/signing-key.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { defaultLimitsOf } from './limiter-services.ts';
import { retentionOf } from './storage/record-remover.ts';
import { statementKeyOf } from './storage/statement-services.ts';
import type { StorageServices } from './storage/storage-services.ts';
import type { EventServices } from './webhook-services.ts';

/** What a config says of the services of the whole process. */
interface ActiveSettings {
  /** The balance below which a key counts as low, in nano-USD. */
  readonly lowBalanceNanos: number;
  /** How long records are kept, and where old ones go. */
  readonly retention: RetentionSettings;
  /** How long before the expiry of a key events come, in milliseconds. */
  readonly expiryNoticesMs: readonly number[];
  /** How long an upstream must be down, or up again, before an event comes, in milliseconds. */
  readonly upstreamDownMs: number;
  /** How many of the keys that spend most are in the metrics. */
  readonly topKeys: number;
  /** The key of the config that signs statements; `null` for that of the database. */
  readonly statementKey: SigningKey | null;
  /** The limits of keys without limits of their own. */
  readonly defaultLimits: Limits;
  /** The groups that keys may belong to. */
  readonly groups: Groups;
  /** The limits of the upstreams that have any, by name. */
  readonly upstreamLimiters: ReadonlyMap<string, LimiterSettings>;
}

/** The state of a model at an upstream, by its name there. */
interface UpstreamModelState {
  readonly upstream: string;
  readonly model: string;
  readonly state: UpstreamState;
}

/** What process services read of the config in force. */
export interface ActiveConfig extends ActiveSettings {
  /** The receivers of events. */
  readonly webhooks: readonly Webhook[];
  /** The keys that the config declares. */
  readonly declaredKeys: readonly DeclaredKey[];
  /** The state of every configured upstream; one whose models all pause counts as open. */
  upstreamStates(): Readonly<Record<string, UpstreamState>>;
  /** The state of each model at an upstream that was asked for; one that pauses counts as open. */
  upstreamModelStates(): readonly UpstreamModelState[];
  /** The report on each upstream, by name. */
  upstreamReports(): Readonly<Record<string, UpstreamReport>>;
  /** The reason why this process can't take requests now; `null` when it can. */
  whyNotReady(): Promise<string | null>;
  /** Each model on offer, with whether at least one of its routes works. */
  modelAvailability(): readonly (readonly [model: string, isAvailable: boolean])[];
}

/** What gauges show of the limiters of upstreams, and of events. */
interface WatchedServices {
  readonly upstreamLimiters: Pick<UpstreamLimiters, 'views'>;
  readonly events: Pick<EventServices, 'oldestAgeMs'>;
}

/** Takes from a config what services of the whole process read. */
export function activeSettingsOf({
  limits,
  groups,
  records,
  metrics,
  statements,
  events,
  upstreams,
}: Config): ActiveSettings {
  return {
    lowBalanceNanos: limits.lowBalance,
    retention: retentionOf(records),
    topKeys: metrics.topKeys,
    statementKey: statementKeyOf({ statements }),
    expiryNoticesMs: [...new Set(events.keyExpiring)],
    upstreamDownMs: events.upstreamDown,
    defaultLimits: defaultLimitsOf(limits),
    groups: groupsOf(groups),
    upstreamLimiters: limiterSettingsOf(upstreams),
  };
}

/** What is read while no config is in force yet. */
export function nothingActive(config: Config): ActiveConfig {
  return {
    ...activeSettingsOf(config),
    declaredKeys: [],
    webhooks: [],
    upstreamStates: () => ({}),
    upstreamModelStates: () => [],
    upstreamReports: () => ({}),
    whyNotReady: async () => 'no config is in force yet',
    modelAvailability: () => [],
  };
}

/** What gauges are read from, beside the work in the background. */
export function sourcesOf(
  active: () => ActiveConfig,
  { records, engine }: StorageServices,
  { upstreamLimiters, events }: WatchedServices,
  log: Log,
) {
  return {
    upstreamLimiters: () => upstreamLimiters.views(),
    oldestEventAgeMs: () => events.oldestAgeMs(),
    upstreamStates: () => active().upstreamStates(),
    upstreamModelStates: () => active().upstreamModelStates(),
    modelAvailability: () => active().modelAvailability(),
    settlementLagMs: () => records.lagMs(),
    isDatabaseUsable: () => records.writeFault === null && engine.impaired === null,
    databaseLogBytes: () => engine.logBytes,
    logLinesDropped: () => log.droppedLines,
  };
}
