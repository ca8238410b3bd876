import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { ConnectionDeadlines, ConnectionLimits, ConnectionRefusal } from '../../domain/edge.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { networkOf } from '../../shared/ip-address.ts';
import { atMost } from '../../shared/at-most.ts';
import { Connection } from './connection.ts';
import type { ConnectionEvents } from './connection.ts';

/** How long an address counts as a client's after a valid key was last used there, in milliseconds. */
const clientAddressMs = 600_000;

/** How many client addresses are kept; beyond that the least recently used one is dropped. */
const maxClientAddresses = 10_000;

/**
 * How long a new connection, and one with a known key after its last answer, is protected from eviction, in
 * milliseconds: a request may have arrived that is not read yet.
 */
const protectedMs = 1_000;

/** The share of a listener's connections up to which anonymous ones may evict idle ones with a known key. */
const anonymousShare = 1 / 2;

/** The open connections of one address: the anonymous ones, and the number of those with a known key. */
interface AddressUse {
  readonly address: string;
  readonly anonymous: Set<Connection>;
  known: number;
}

/** What a connection table needs. */
export interface ConnectionTablePorts {
  /** Read for every new connection, because a reload may change them. */
  readonly limits: () => ConnectionLimits;
  readonly deadlines: ConnectionDeadlines;
  readonly clock: Clock;
  readonly onRefused: (reason: ConnectionRefusal) => void;
  /** Whether the other end of a connection is a trusted proxy. */
  readonly isProxy: (socket: Socket) => boolean;
}

/**
 * The open connections of one listener. A connection is anonymous until a valid key is presented on it. A full
 * listener evicts the anonymous connection that has been idle longest, or else the one with a known key that has been
 * idle longest; a connection with a pending answer is never evicted. An address at which a valid key was presented
 * lately may be a proxy for many clients, so the limit per address does not apply to it, nor to a trusted proxy.
 */
export class ConnectionTable {
  readonly #ports: ConnectionTablePorts;
  readonly #open = new Map<Connection, AddressUse>();
  #known = 0;
  /** New connections and when they were accepted, oldest first: they are protected from eviction. */
  readonly #recent = new Map<Connection, number>();
  /** Anonymous connections that may be evicted, the longest idle first. */
  readonly #evictable = new Set<Connection>();
  /** Idle connections with a known key, and since when they are idle, the longest idle first. */
  readonly #idleKnown = new Map<Connection, number>();
  readonly #addresses = new Map<string, AddressUse>();
  /** When a known key was last used at an address, in milliseconds. */
  readonly #clientAddresses = new LRUCache<string, number>(atMost(maxClientAddresses));
  readonly #events: ConnectionEvents;

  constructor(ports: ConnectionTablePorts) {
    this.#ports = ports;
    const idleMs = ports.deadlines.idle;
    this.#events = {
      changed: (connection) => this.#update(connection),
      keepAlive: { idleMs, header: `timeout=${Math.floor(idleMs / 1_000)}` },
      overrun: () => ports.onRefused('pipelined'),
      isClientAddress: (connection) => {
        const use = this.#open.get(connection);
        return use !== undefined && (ports.isProxy(connection.socket) || this.#isClientAddress(use));
      },
    };
  }

  /** Accepts a new connection, or closes it. */
  accept(socket: Socket): void {
    const connection = new Connection(socket, this.#events);
    const address = networkOf(socket.remoteAddress ?? '');
    const use = this.#addresses.get(address) ?? { address, anonymous: new Set(), known: 0 };
    this.#endProtection();
    const refusal = this.#makeRoom(use, socket);
    if (refusal !== null) {
      socket.destroy();
      return this.#ports.onRefused(refusal);
    }
    this.#addresses.set(address, use);
    this.#open.set(connection, use);
    use.anonymous.add(connection);
    this.#recent.set(connection, this.#ports.clock.monotonicMs());
    socket.once('close', () => {
      const isLast = use.known === 0 && use.anonymous.size === 0;
      if (isLast && this.#addresses.get(address) === use) this.#addresses.delete(address);
    });
  }

  /** Closes the connections that wait for a next request. One whose last answer is not sent to its end stays open. */
  closeIdle(): void {
    for (const connection of this.#open.keys()) if (connection.isQuiet) connection.destroy();
  }

  /** Closes every connection, also one whose TLS handshake is not done. */
  closeAll(): void {
    for (const connection of this.#open.keys()) connection.destroy();
  }

  /** Makes room for one more connection of an address; returns the exceeded limit if none can be evicted. */
  #makeRoom(use: AddressUse, socket: Socket): ConnectionRefusal | null {
    const { maxConnections, maxAnonymousPerAddress } = this.#ports.limits();
    const isCrowded =
      use.anonymous.size >= maxAnonymousPerAddress &&
      !this.#ports.isProxy(socket) &&
      !this.#isClientAddress(use);
    if (isCrowded && !this.#evict(use.anonymous)) return 'address_limit';
    if (this.#open.size < maxConnections || this.#evict(this.#evictable)) return null;
    return this.#evictKnown(maxConnections) ? null : 'listener_full';
  }

  /** Whether a valid key is in use at an address, or was lately. */
  #isClientAddress({ address, known }: AddressUse): boolean {
    if (known > 0) return true;
    const lastMs = this.#clientAddresses.get(address);
    return lastMs !== undefined && this.#ports.clock.monotonicMs() - lastMs < clientAddressMs;
  }

  /** Evicts the first candidate that may be evicted; false when there is none. */
  #evict(candidates: ReadonlySet<Connection>): boolean {
    for (const connection of candidates) {
      if (!this.#evictable.has(connection)) continue;
      this.#close(connection);
      return true;
    }
    return false;
  }

  /** Evicts the longest idle connection with a known key: otherwise one client could keep all others out. */
  #evictKnown(maxConnections: number): boolean {
    const [longest] = this.#idleKnown;
    if (longest === undefined || this.#open.size - this.#known >= maxConnections * anonymousShare)
      return false;
    const [connection, sinceMs] = longest;
    if (this.#ports.clock.monotonicMs() - sinceMs < protectedMs) return false;
    this.#close(connection);
    return true;
  }

  #close(connection: Connection): void {
    connection.destroy();
    this.#update(connection);
    this.#ports.onRefused('evicted');
  }

  /** Ends the protection of connections that are no longer new. */
  #endProtection(): void {
    if (this.#recent.size === 0) return;
    const nowMs = this.#ports.clock.monotonicMs();
    for (const [connection, sinceMs] of this.#recent) {
      if (nowMs - sinceMs < protectedMs) return;
      this.#recent.delete(connection);
      this.#updateCandidates(connection);
    }
  }

  #update(connection: Connection): void {
    const use = this.#open.get(connection);
    if (use === undefined) return;
    this.#endProtection();
    const wasKnown = !use.anonymous.has(connection);
    if (connection.isKnown && !wasKnown) {
      use.anonymous.delete(connection);
      use.known++;
      this.#known++;
    }
    if (!connection.isOpen) {
      // While it is open, the address has a connection with a known key.
      if (connection.isKnown) this.#clientAddresses.set(use.address, this.#ports.clock.monotonicMs());
      this.#open.delete(connection);
      this.#recent.delete(connection);
      if (!use.anonymous.delete(connection)) {
        use.known--;
        this.#known--;
      }
    }
    this.#updateCandidates(connection);
  }

  /** Adds a connection to the end of its list of eviction candidates, or removes it. */
  #updateCandidates(connection: Connection): void {
    const isIdle = connection.isOpen && connection.isIdle;
    if (!isIdle || connection.isKnown || this.#recent.has(connection)) this.#evictable.delete(connection);
    else this.#evictable.add(connection);
    if (!isIdle || !connection.isKnown) this.#idleKnown.delete(connection);
    else if (!this.#idleKnown.has(connection))
      this.#idleKnown.set(connection, this.#ports.clock.monotonicMs());
  }
}
