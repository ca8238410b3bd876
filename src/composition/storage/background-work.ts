import { countRefusals } from '../../background/count-refusals.ts';
import { keepRoots } from '../../background/keep-roots.ts';

import { monitorLedger } from '../../background/monitor-ledger.ts';
import { keepRemoving, oldBefore } from '../../background/remove-old-records.ts';
import { keepRollingUp } from '../../background/roll-up-usage.ts';
import { watchTopKeys } from '../../background/watch-top-keys.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { isoTime } from '../../http/present/iso-time.ts';
import { createArchiving } from '../../operations/archive-records.ts';
import { createStatements } from '../../operations/statements.ts';
import type { InFlight } from '../../pipeline/in-flight.ts';
import { createLedgerChain } from '../../storage/ledger/ledger-chain.ts';
import { createLedgerRoots } from '../../storage/ledger/ledger-roots.ts';
import { createSigningKeys } from '../../storage/ledger/signing-keys.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { ActiveConfig } from '../active-config.ts';
import type { Observability } from '../observability.ts';
import type { EventServices } from '../webhook-services.ts';
import { composeAudit } from './audit-services.ts';
import type { StorageServices } from './storage-services.ts';

/** What the work reports to. */
interface Reports {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly events: EventServices;
  readonly addSink: Observability['addSink'];
}

/**
 * Begins all work on the database beside requests: audits of the ledger and its roots, the end of old records, and the sums of
 * usage. Of processes that share the database, one does each for all.
 */
export function startBackgroundWork(
  { engine, store, records, retention, usage, recovered, shared, ...storage }: StorageServices,
  inFlight: InFlight,
  active: () => ActiveConfig,
  { clock, log, metrics, events, addSink }: Reports,
) {
  const basics = { ready: recovered, clock, onFault: log.fault };
  const audit = composeAudit(engine, basics, () => active().auditRetention);
  const monitor = monitorLedger(store, storage.ledgerAudit, {
    ...basics,
    duty: shared?.ledgerDuty ?? null,
    lowBalanceNanos: () => active().lowBalanceNanos,
    isPending: (requestId) => inFlight.has(requestId) || records.isWaiting(requestId),
    onExpired: (count) => metrics.holdsExpired(count),
    onAudited: (imbalanceNanos, faults) => events.audited(imbalanceNanos, faults),
  });

  const onRemoved = (count: number): void => metrics.recordsRemoved(count);
  const remover = keepRemoving(retention, {
    ...basics,
    duty: shared?.removalDuty ?? null,
    settings: () => active().retention,
    claims: store,
    removeLines: audit.removeOld,
    onRemoved,
    onRun: (removal, beforeMs) =>
      log.notice('old records removed', { ...removal, before: isoTime(beforeMs) }),
  });

  const [chain, roots] = [createLedgerChain(engine), createLedgerRoots(engine)];
  const keys = createSigningKeys(engine, () => clock.now());
  const rootKeeper = keepRoots({
    ...basics,
    duty: shared?.rootDuty ?? null,
    chain,
    roots,
    audit: audit.chain,
    onRoot: ({ number, accounts, hash }) => log.info('ledger root', { root: number, accounts, hash }),
  });

  const roller = keepRollingUp(storage.usageRollups, { ...basics, duty: shared?.usageDuty ?? null });
  const spending = watchTopKeys(
    { usage, store },
    {
      ...basics,
      duty: shared?.topKeysDuty ?? null,
      count: () => active().topKeys,
      hasGroups: () => active().groups.size > 0,
    },
  );
  const refusals = countRefusals(storage.refusals, basics);
  addSink(refusals);

  return {
    /** What operators do with old records. */
    archiving: createArchiving(retention, {
      clock,
      oldBefore: () => oldRecordsBefore(active(), clock),
      onRemoved,
    }),
    /** Signed statements of accounts. */
    statements: createStatements({ chain, roots, keys, givenKey: () => active().statementKey, clock }),
    /** The audit of what operators do. */
    audit,
    /** What gauges are read from. */
    gauges: {
      ledgerFigures: () => monitor.figures,
      oldestRecordAgeMs: () => remover.oldestRecordAgeMs(),
      ledgerRoot: () => rootKeeper.figures(),
      topKeys: () => spending.current(),
      topGroups: () => spending.currentGroups(),
    },
    /** Resolves when nothing is read or written any more. */
    stop: () =>
      Promise.all([monitor, remover, rootKeeper, roller, spending, refusals, audit].map((one) => one.stop())),
  };
}

/** The time before which `records.keep` calls records old; `null` without it. */
function oldRecordsBefore({ retention: { keepMs } }: ActiveConfig, clock: Clock): number | null {
  return keepMs === null ? null : oldBefore(clock.now(), keepMs);
}
