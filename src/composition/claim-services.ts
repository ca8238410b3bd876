import { readAt } from '../config/problem.ts';
import type { Config } from '../config/schema/schema.ts';
import { defaultHost } from '../config/default-addresses.ts';
import { readTlsFiles } from '../config/tls-files.ts';
import type { Certificates } from '../domain/ports/network.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Workers } from '../domain/ports/workers.ts';
import { openPeerListener } from '../http/listen/peer-listener.ts';
import { RunningClaims } from '../pipeline/claims/running-claims.ts';
import { noteDelivered, serveJoin, serveResponse } from '../pipeline/claims/serve-peer.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { createPeerClient } from '../transport/peers.ts';
import type { ActiveConfig } from './active-config.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** What the requests that clients have named are kept with. */
interface ClaimOptions {
  readonly active: () => ActiveConfig;
  readonly inFlight: InFlight;
  readonly clock: Clock;
  readonly log: Pick<Log, 'fault'>;
}

/**
 * The requests of this process that clients have named. Those that run are stopped before another process may run their claims,
 * as the lease on them has ended, or can't be renewed.
 * Where other processes use the database, too, and know a token with this one, each asks the others for what they have.
 */
export function composeClaims(
  { store, lease, shared }: Pick<StorageServices, 'store' | 'lease' | 'shared'>,
  { resume }: Pick<Config, 'resume'>,
  workers: Pick<Workers, 'peerToken'> | null,
  { active, inFlight, clock, log }: ClaimOptions,
) {
  const reach = reachOf(resume.nodes, workers);
  const peers =
    shared === null || reach === null
      ? null
      : createPeerClient({
          addresses: (owner) => shared.peerAddresses(owner),
          token: reach.token,
          certificates: () => reach.trusted,
          clock,
        });
  const holdsLease = (): boolean => shared === null || lease.holds;
  const claims = new RunningClaims({ store, peers, holdsLease, clock, settings: () => active().resume });
  // Before the first claim is begun under a lease: until then, the others find no answers of this process. Where that fails, it
  // is written with the next look at what they change.
  const nameLease = async (): Promise<void> => {
    await shared?.nameLease().catch(() => {});
  };
  const opening =
    peers === null || reach === null
      ? null
      : openPeerListener({
          ...reach,
          join: (wanted, peer) => serveJoin(wanted, peer, { claims }),
          noteDelivered: (wanted) => noteDelivered(wanted, claims),
          respond: (wanted, action) => serveResponse(wanted, action, { claims, inFlight }),
          clock,
          onFault: log.fault,
        });
  // A process that has its database alone loses nothing to others.
  lease.follow((state) => {
    if (state === 'ended' || shared !== null) claims.leaseEnded();
    if (state === 'ended' && opening !== null) void nameLease();
  });
  const named = opening?.then(async ({ address }) => {
    shared?.setAddress(address);
    await lease.taken;
    await nameLease();
  });
  named?.catch(() => {});
  return {
    claims,
    /** Resolves when the other processes can ask this one; rejects with the reason why they can't. */
    async reachable(): Promise<void> {
      await opening?.catch((error: unknown) => {
        throw new Error('resume.nodes: its listener could not be opened', { cause: error });
      });
      await named?.catch(() => {});
    },
    /** Drops all answers that are kept, and tells the other processes nothing more. */
    async close(): Promise<void> {
      claims.close();
      const listener = await opening?.catch(() => null);
      listener?.close();
      await peers?.close();
    },
  };
}

/** Where this process is reached by others, and how it knows them; `null` where it does not. */
function reachOf(nodes: Config['resume']['nodes'], workers: Pick<Workers, 'peerToken'> | null) {
  if (nodes === undefined) {
    const none: Certificates = {};
    return workers === null
      ? null
      : { host: defaultHost, port: 0, token: workers.peerToken, certificates: null, trusted: none };
  }
  const { host, port, token, tls } = nodes;
  const files = tls === undefined ? null : readAt(['resume', 'nodes', 'tls'], () => readTlsFiles(tls));
  const ca = files?.ca ?? files?.cert;
  return { host, port, token, certificates: files, trusted: ca === undefined ? {} : { ca } };
}
