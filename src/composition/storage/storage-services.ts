import type { Beginnings } from '../../background/beginnings.ts';
import { createWriteCheck } from '../../background/check-writes.ts';
import { keepLease } from '../../background/keep-lease.ts';
import type { LeaseKeeper } from '../../background/keep-lease.ts';
import { retrySettlements } from '../../background/retry-settlements.ts';
import type { KeptSettlements } from '../../background/retry-settlements.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { SharedLimiter } from '../../coordination/shared-limiter.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Engine } from '../../storage/engine.ts';
import { createLedgerAudit } from '../../storage/ledger/ledger-audit.ts';
import { createRefusals } from '../../storage/refusals.ts';
import { createRetention } from '../../storage/retention.ts';
import { createStore } from '../../storage/store.ts';
import type { Store } from '../../storage/store.ts';
import { createTokenUse } from '../../storage/token-use.ts';
import { createUsageRollups } from '../../storage/usage/usage-rollups.ts';
import { createUsage } from '../../storage/usage/usage-store.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import { chooseEngine } from './choose-engine.ts';
import { nextId } from '../next-id.ts';
import { composeKeyDirectory, createSharedServices } from './shared-services.ts';

/** The database, and what reads and writes it. */
export type StorageServices = ReturnType<typeof openStorage>;

/**
 * Begins to open the database of the config; `recovered` resolves when it can be used. `takesImported` says whether the config
 * in force takes imported keys.
 */
export function openStorage(
  config: Config['storage'],
  clock: Clock,
  log: Log,
  metrics: Pick<Metrics, 'holdsExpired' | 'keyLookUpShed'>,
  takesImported = () => false,
) {
  let beginnings: Beginnings | null = null;
  const { store, slots, chosen, followSlots } = openStore(config, clock, log, {
    beginnings: () => beginnings,
    renewLease: () => lease.renew(),
  });
  const { engine, quotasOf, spool, sharedState, whyNoCopy } = chosen;
  let isLost = false;
  void engine.lost.then(() => (isLost = true));
  const shared = slots === null ? null : createSharedServices(engine, () => store.owner());
  const closed = (message: string) => (count: number) => {
    if (count === 0) return;
    metrics.holdsExpired(count);
    log.notice(message, { count });
  };
  const lease = keepLease(store, {
    clock,
    ready: engine.ready,
    async onEnded() {
      await store.closeLostRecords().then(closed('closed requests left open by an ended process'));
      await slots?.freeLost();
    },
    onFault: log.fault,
  });
  const records = retrySettlements(store, {
    clock,
    onFault: log.fault,
    spool,
    ready: lease.taken,
    isBroken: () => engine.broken !== null,
    isLost: () => isLost,
    ...(shared === null ? { ordered: store } : {}),
  });
  ({ beginnings } = records);
  const lookUps = { onFault: log.fault, onShed: () => metrics.keyLookUpShed(), takesImported };
  const recovered = records.recover().then(closed('closed requests left open by a previous process'));
  // Awaited by `ready` only: a rejection before that must not end the process as unhandled.
  recovered.catch(() => {});
  return {
    engine,
    store,
    /** The slots that all nodes on the database share; `null` where each process counts its own. */
    slots,
    /** Tells a limiter over these slots what becomes of them. */
    followSlots,
    /** The quotas of nodes in the limits of upstreams; `null` where this process has all of them. */
    quotas: quotasOf?.(() => store.owner()) ?? null,
    /** Consumption records whose settlements outlive an outage of the database. */
    records,
    /** The lease of this process on what it holds in the database. */
    lease,
    /**
     * Resolves when the database is open, the settlements that an earlier process left in the spool are made, and its open
     * records are closed. Rejects when the database or the spool can't be opened.
     */
    recovered,
    /** Whether the database accepts writes, for the readiness probe. */
    writeCheck: createWriteCheck(records, clock, (fault) => {
      if (fault === null) log.notice('database accepts writes again');
      else log.fault('database does not accept writes', fault);
    }),
    keyDirectory: composeKeyDirectory(store, shared, clock, lookUps),
    ledgerAudit: createLedgerAudit(engine),
    tokenUse: createTokenUse(engine, log.fault),
    /** The end of old records. */
    retention: createRetention(engine),
    /** What was used, in running sums. */
    usage: createUsage(engine),
    usageRollups: createUsageRollups(engine),
    /** How many requests were refused by the limits of this gateway. */
    refusals: createRefusals(engine),
    /** What is shared with other processes; `null` where this one has the database alone. */
    shared,
    sharedState,
    whyNoCopy,
    /**
     * Offers the waiting settlements once more and closes the database and the spool. Throws if settlements are lost, or if
     * the database could not be saved or closed.
     */
    close: () => closeStorage(engine, records, lease, log),
  };
}

/** Learns which requests' slots are freed by their settlements, and when the connection to the database is back. */
type SlotFollower = Pick<SharedLimiter, 'freed' | 'regained'>;

/** What begins later than the database: the beginnings in memory, with which it does things in order, and the lease. */
interface LaterServices {
  readonly beginnings: () => Beginnings | null;
  readonly renewLease: () => Promise<void>;
}

/** Opens the database. */
function openStore(
  config: Config['storage'],
  clock: Clock,
  log: Log,
  { beginnings, renewLease }: LaterServices,
) {
  let follower: SlotFollower | null = null;
  const chosen = chooseEngine(config, clock, log, {
    beforeUnit: () => beginnings()?.beforeUnit(),
    beforeRead: async () => beginnings()?.written(),
    // Under a lease that is over, slots would not be restored.
    onRegained: () => void renewLease().then(() => follower?.regained()),
  });
  const store = createStore(chosen.engine, {
    nextId,
    now: () => clock.now(),
    report: log.fault,
    onUnusual: (keyId) => beginnings()?.forgetKey(keyId),
    onSlotFreed: ({ begun, requestId }) => follower?.freed(begun.keyId, requestId),
  });
  // A look-up, before which the engine hands nothing in: keys that requests present must not wait for it.
  const accounts: Store['accounts'] = async (keyIds) => {
    await beginnings()?.written();
    return store.accounts(keyIds);
  };
  return {
    store: { ...store, accounts },
    slots: chosen.slotsOf?.(() => store.owner(), store.openingOf) ?? null,
    chosen,
    followSlots: (following: SlotFollower) => void (follower = following),
  };
}

async function closeStorage(
  engine: Engine,
  records: KeptSettlements,
  lease: LeaseKeeper,
  log: Log,
): Promise<void> {
  await records.flush();
  await lease.stop();
  const failures: unknown[] = [];
  await engine.close().catch((error: unknown) => void failures.push(error));
  const { spooled, lost } = await records.close();
  if (spooled > 0)
    log.fault('settlements left in the spool for the next start', 'the database did not accept them', {
      count: spooled,
    });
  if (lost > 0)
    failures.push(new Error(`${lost} settlements lost: neither the database nor the spool accepted them`));
  for (const failure of failures.slice(1)) log.fault('closing the database failed', failure);
  if (failures.length > 0) throw failures[0];
}
