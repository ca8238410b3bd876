import { hostname } from 'node:os';
import { boundLookUps } from '../../background/bounded-look-ups.ts';
import { followChanges, maxUnconfirmedMs } from '../../background/follow-changes.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { KeyLookUp } from '../../domain/ports/key-store.ts';
import type { RunningRequest, RunningRequests } from '../../domain/ports/running-requests.ts';
import type { Engine } from '../../storage/engine.ts';
import { createKeyDirectory } from '../../storage/keys/key-directory.ts';
import type { DirectoryPorts, ManagedKeyDirectory } from '../../storage/keys/key-directory.ts';
import { readPeerAddresses } from '../../storage/postgres/nodes/peer-addresses.ts';
import { createRunningElsewhere } from '../../storage/postgres/nodes/running-elsewhere.ts';
import { createSharedChanges, nameLease } from '../../storage/postgres/nodes/shared-changes.ts';
import { createSharedDuty } from '../../storage/postgres/nodes/shared-duty.ts';
import type { Log } from '../../telemetry/log/logger.ts';

/** What a process shares with the others that use the same database. */
type SharedServices = ReturnType<typeof createSharedServices>;

/** `owner` is the id under which the process has its lease now. Each duty is work that one of the processes does for all. */
export function createSharedServices(engine: Engine, owner: () => string) {
  const name = `${hostname()}:${process.pid}`;
  let address: string | null = null;
  const self = { owner, name, address: () => address };
  return {
    /** How operators see this process: its host and the number of its process there. */
    name,
    changes: createSharedChanges(engine, self),
    /** Says where the others reach this process; they know it by the next look at what they change. */
    setAddress: (found: string) => void (address = found),
    /** Says so under the lease that it has now, at once. */
    nameLease: () => nameLease(engine, self),
    /** Where this process reaches the others, or the one that has its lease under an id. */
    peerAddresses: (of: string | null) => readPeerAddresses(engine, owner(), of),
    /** How long the directory may rely on cached keys. */
    keys: { maxUnconfirmedMs },
    /** The requests of the other processes. */
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
  ports: DirectoryPorts,
): ManagedKeyDirectory {
  if (shared === null) return createKeyDirectory(store, clock, ports);
  return createKeyDirectory(boundLookUps(store, clock), clock, ports, shared.keys);
}

/** What is followed of the others, and who is told. */
interface FollowedDatabase {
  readonly shared: SharedServices | null;
  readonly keyDirectory: ManagedKeyDirectory;
  readonly engine: Pick<Engine, 'ready'>;
}

/**
 * Joins this process to the others: `running` has the requests of all, and what the others change is followed. Where it has the
 * database alone, its own requests are all there are.
 */
export function joinNodes(
  { shared, keyDirectory, engine }: FollowedDatabase,
  here: RunningRequests,
  clock: Clock,
  log: Pick<Log, 'fault'>,
) {
  if (shared === null) return { running: here, stop: () => Promise.resolve() };
  const { name, changes, runningElsewhere } = shared;
  const listeners = { keys: keyDirectory, running: here };
  const follower = followChanges(changes, listeners, { ready: engine.ready, clock, onFault: log.fault });
  return {
    running: joinRunning(here, runningElsewhere, name),
    /** Resolves when nothing of the others is read or written any more. */
    stop: () => follower.stop(),
  };
}

/** The requests in progress on all processes that share a database; `elsewhere` counts the slots of all of them. */
function joinRunning(here: RunningRequests, elsewhere: RunningRequests, name: string): RunningRequests {
  return {
    async list() {
      const [own, others] = await Promise.all([here.list(), elsewhere.list()]);
      return [...own.map(onNode(name)), ...others].toSorted(byArrival);
    },
    count: (keyIds) => elsewhere.count(keyIds),
    cancel: async (requestId, keyId) =>
      (await here.cancel(requestId, keyId)) || elsewhere.cancel(requestId, keyId),
  };
}

function onNode(node: string): (request: RunningRequest) => RunningRequest {
  return (request) => Object.assign({}, request, { node });
}

function byArrival(one: RunningRequest, other: RunningRequest): number {
  return one.createdAtMs - other.createdAtMs;
}
