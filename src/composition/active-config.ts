import { groupsOf } from '../config/schema/groups-schema.ts';
import { limiterSettingsOf } from '../config/schema/limiter-schema.ts';
import { resumeSettingsOf } from '../config/schema/resume-schema.ts';
import type { Config } from '../config/schema/schema.ts';
import { auditedSettings } from '../config/show-config.ts';
import { readStatementKey } from '../config/statement-key.ts';
import type { DeclaredKey } from '../domain/keys/declared-key.ts';
import { limitsFrom } from '../domain/limits/limits.ts';
import type { Webhook } from '../domain/ports/outbox.ts';
import { fieldsOf } from '../domain/audit/differences.ts';
import { writeArchivedAuditLine } from '../http/present/audit.ts';
import { writeArchivedRecord } from '../http/present/record.ts';
import type { UpstreamReport } from '../operations/report-upstreams.ts';
import { createArchiveFolder } from '../storage/archive-folder.ts';
import type { MetricSources } from '../telemetry/metrics/figures.ts';

/** What a config says of the services of the whole process. */
export function activeSettingsOf(config: Config) {
  const { limits, records, audit, statements, events } = config;
  const { archive: folder } = records;
  return {
    /** The balance below which a key counts as low, in nano-USD. */
    lowBalanceNanos: limits.lowBalance,
    /** How long records are kept, and where old ones go. */
    retention: {
      keepMs: records.keep ?? null,
      archive: folder === undefined ? null : createArchiveFolder(folder, writeArchivedRecord),
    },
    /** The same of lines of the audit. */
    auditRetention: {
      keepMs: audit.keep,
      archive: folder === undefined ? null : createArchiveFolder(folder, writeArchivedAuditLine, 'audit'),
    },
    /** What the audit compares of it. Declared keys have lines of their own. */
    audited: () => fieldsOf(auditedSettings(config)),
    /** How many of the keys that spend most are in the metrics. */
    topKeys: config.metrics.topKeys,
    /** The key of the config that signs statements; `null` for that of the database. */
    statementKey: statements.key === undefined ? null : readStatementKey(statements.key),
    /** How long before the expiry of a key events come, in milliseconds. */
    expiryNoticesMs: [...new Set(events.keyExpiring)],
    /** How long an upstream must be down, or up again, before an event comes, in milliseconds. */
    upstreamDownMs: events.upstreamDown,
    /** What becomes of requests that clients have named. */
    resume: resumeSettingsOf(config.resume),
    /** The limits of keys without limits of their own. */
    defaultLimits: limitsFrom(limits),
    /** The groups that keys may belong to. */
    groups: groupsOf(config.groups),
    /** Whether keys of other gateways are looked up that were imported by their hash. */
    takesImported: config.server.importedKeys,
    /** The limits of the upstreams that have any, by name. */
    upstreamLimiters: limiterSettingsOf(config.upstreams),
  };
}

/** What process services read of the config in force. */
export interface ActiveConfig
  extends
    ReturnType<typeof activeSettingsOf>,
    Pick<MetricSources, 'upstreamStates' | 'upstreamModelStates' | 'modelAvailability'> {
  /** The receivers of events. */
  readonly webhooks: readonly Webhook[];
  /** The keys that the config declares. */
  readonly declaredKeys: readonly DeclaredKey[];
  /** The report on each upstream, by name. */
  upstreamReports(): Readonly<Record<string, UpstreamReport>>;
  /** The reason why this process can't take requests now; `null` when it can. */
  whyNotReady(): Promise<string | null>;
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
