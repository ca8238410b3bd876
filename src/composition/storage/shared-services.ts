import { hostname } from 'node:os';
import { boundLookUps } from '../../background/bounded-look-ups.ts';
import { followChanges, maxUnconfirmedMs } from '../../background/follow-changes.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { KeyLookUp } from '../../domain/ports/key-store.ts';
import type { RunningRequests } from '../../domain/ports/running-requests.ts';
import type { LeavableDuty, SharedChanges, SharedDuty } from '../../domain/ports/shared-changes.ts';
import { joinRunning } from '../../operations/running-on-all-nodes.ts';
import type { Engine } from '../../storage/engine.ts';
import { createKeyDirectory } from '../../storage/keys/key-directory.ts';
import type { DirectoryReports, ManagedKeyDirectory, SharedKeys } from '../../storage/keys/key-directory.ts';
import { createRunningElsewhere } from '../../storage/postgres/nodes/running-elsewhere.ts';
import { createSharedChanges } from '../../storage/postgres/nodes/shared-changes.ts';
import { createSharedDuty } from '../../storage/postgres/nodes/shared-duty.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { StorageServices } from './storage-services.ts';

/** What a process shares with the others that use the same database. */
export interface SharedServices {
  /** How operators see this process: its host and the number of its process there. */
  readonly name: string;
  readonly changes: SharedChanges;
  /** How long the directory may rely on cached keys. */
  readonly keys: SharedKeys;
  /** The requests of the other processes. */
  readonly runningElsewhere: RunningRequests;
  /** The audits of the ledger, which one process makes. */
  readonly ledgerDuty: SharedDuty;
  /** The removal of old records, which one process does. */
  readonly removalDuty: SharedDuty;
  /** The deliveries to webhooks, which one process makes. */
  readonly deliveryDuty: LeavableDuty;
  /** The metrics of the keys that spend most, which one process shows. */
  readonly topKeysDuty: SharedDuty;
  /** The rolling up of usage, which one process does. */
  readonly usageDuty: SharedDuty;
  /** The roots of the ledger, which one process makes. */
  readonly rootDuty: SharedDuty;
}

/** `owner` is the id under which the process has its lease now. */
export function createSharedServices(engine: Engine, owner: () => string): SharedServices {
  const name = `${hostname()}:${process.pid}`;
  return {
    name,
    changes: createSharedChanges(engine, { owner, name }),
    keys: { maxUnconfirmedMs },
    runningElsewhere: createRunningElsewhere(engine, owner),
    ledgerDuty: createSharedDuty(engine, 'ledger audit', owner),
    removalDuty: createSharedDuty(engine, 'removal of old records', owner),
    deliveryDuty: createSharedDuty(engine, 'webhook delivery', owner),
    topKeysDuty: createSharedDuty(engine, 'metrics of top keys', owner),
    usageDuty: createSharedDuty(engine, 'usage rollups by group', owner),
    rootDuty: createSharedDuty(engine, 'ledger roots', owner),
  };
}

/** The directory of keys; where other processes change them, it keeps them no longer than it knows of their changes. */
export function composeKeyDirectory(
  store: KeyLookUp,
  shared: SharedServices | null,
  clock: Clock,
  reports: DirectoryReports,
): ManagedKeyDirectory {
  if (shared === null) return createKeyDirectory(store, clock, reports);
  return createKeyDirectory(boundLookUps(store, clock), clock, reports, shared.keys);
}

/** The requests of all processes that share the database, and the following of what the others change. */
interface JoinedNodes {
  readonly running: RunningRequests;
  /** Resolves when nothing of the others is read or written any more. */
  stop(): Promise<void>;
}

/** Joins this process to the others; where it has the database alone, its own requests are all there are. */
export function joinNodes(
  { shared, keyDirectory, engine }: Pick<StorageServices, 'shared' | 'keyDirectory' | 'engine'>,
  here: RunningRequests,
  clock: Clock,
  log: Pick<Log, 'fault'>,
): JoinedNodes {
  if (shared === null) return { running: here, stop: () => Promise.resolve() };
  const { name, changes, runningElsewhere } = shared;
  const listeners = { keys: keyDirectory, running: here };
  const follower = followChanges(changes, listeners, { ready: engine.ready, clock, onFault: log.fault });
  return { running: joinRunning({ here, elsewhere: runningElsewhere, name }), stop: () => follower.stop() };
}
