import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { ConnectionLimits } from '../domain/connection-limits.ts';
import type { ConnectionRefusal } from '../domain/connection-refusal.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { networkOf } from '../shared/ip-address.ts';
import { Connection } from './connection.ts';
import type { ConnectionEvents } from './connection.ts';

/** How long after the last use of a valid key its address still counts as that of a client, in milliseconds. */
const rememberedMs = 600_000;

/** How many addresses are remembered; beyond that the one that was used longest ago is forgotten. */
const maxRememberedAddresses = 10_000;

/**
 * How long a new connection is not closed to make room, and one with a known key after its last answer, in milliseconds:
 * a request may have arrived that was not read yet.
 */
const untouchedMs = 1_000;

/** The share of a listener that connections without a known key may take from idle ones with one. */
const anonymousShare = 1 / 2;

/** The open connections of one address: those without a known key, and how many there are with one. */
interface AddressUse {
  readonly address: string;
  readonly anonymous: Set<Connection>;
  known: number;
}

/**
 * The open connections of one listener. A connection is anonymous until a valid key is presented on it. When there is no
 * room, the anonymous connection that has been idle longest is closed in favour of a new one, and where there is none,
 * the one with a known key that has been; one with an answer owed on it never is. An address at which a valid key was
 * presented lately may be a proxy in front of many clients, so its anonymous connections are not counted.
 */
export class ConnectionTable {
  readonly #limits: () => ConnectionLimits;
  readonly #clock: Clock;
  readonly #onRefused: (reason: ConnectionRefusal) => void;
  readonly #open = new Map<Connection, AddressUse>();
  #known = 0;
  /** New ones and when they came, oldest first: they are not closed to make room. */
  readonly #young = new Map<Connection, number>();
  /** Anonymous ones that may be closed to make room; the longest idle one is first. */
  readonly #evictable = new Set<Connection>();
  /** Those with a known key on which nothing is owed, and since when; the longest idle one is first. */
  readonly #idleKnown = new Map<Connection, number>();
  readonly #addresses = new Map<string, AddressUse>();
  /** When a known key was last in use at an address. */
  readonly #remembered = new LRUCache<string, number>({ max: maxRememberedAddresses });
  readonly #events: ConnectionEvents;

  /** The limits are asked for with every connection: a reload may change them. */
  constructor(limits: () => ConnectionLimits, clock: Clock, onRefused: (reason: ConnectionRefusal) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#onRefused = onRefused;
    this.#events = {
      changed: (connection) => this.#update(connection),
      overrun: () => onRefused('pipelined'),
      isOfClients: (connection) => {
        const use = this.#open.get(connection);
        return use !== undefined && this.#isOfClients(use);
      },
    };
  }

  /** Takes a new connection in, or closes it. */
  accept(socket: Socket): void {
    const connection = new Connection(socket, this.#events);
    const address = networkOf(socket.remoteAddress ?? '');
    const use = this.#addresses.get(address) ?? { address, anonymous: new Set(), known: 0 };
    this.#growUp();
    const refusal = this.#makeRoom(use);
    if (refusal !== null) {
      socket.destroy();
      return this.#onRefused(refusal);
    }
    this.#addresses.set(address, use);
    this.#open.set(connection, use);
    use.anonymous.add(connection);
    this.#young.set(connection, this.#clock.monotonicMs());
    socket.once('close', () => {
      const isLast = use.known === 0 && use.anonymous.size === 0;
      if (isLast && this.#addresses.get(address) === use) this.#addresses.delete(address);
    });
  }

  /** Why there is no room for one more connection of an address; `null` when there is, or room was made. */
  #makeRoom(use: AddressUse): ConnectionRefusal | null {
    const { maxConnections, maxAnonymousPerAddress } = this.#limits();
    const isCrowded = use.anonymous.size >= maxAnonymousPerAddress && !this.#isOfClients(use);
    if (isCrowded && !this.#evict(use.anonymous)) return 'address_limit';
    if (this.#open.size < maxConnections || this.#evict(this.#evictable)) return null;
    return this.#evictKnown(maxConnections) ? null : 'listener_full';
  }

  /** Whether a valid key is in use at an address, or was lately. */
  #isOfClients({ address, known }: AddressUse): boolean {
    if (known > 0) return true;
    const lastMs = this.#remembered.get(address);
    return lastMs !== undefined && this.#clock.monotonicMs() - lastMs < rememberedMs;
  }

  /** Closes the first of these that may be closed; false when there is none. */
  #evict(candidates: ReadonlySet<Connection>): boolean {
    for (const connection of candidates) {
      if (!this.#evictable.has(connection)) continue;
      this.#close(connection);
      return true;
    }
    return false;
  }

  /** Closes the longest idle connection with a known key: else one client could keep all others out. */
  #evictKnown(maxConnections: number): boolean {
    const [longest] = this.#idleKnown;
    if (longest === undefined || this.#open.size - this.#known >= maxConnections * anonymousShare)
      return false;
    const [connection, sinceMs] = longest;
    if (this.#clock.monotonicMs() - sinceMs < untouchedMs) return false;
    this.#close(connection);
    return true;
  }

  #close(connection: Connection): void {
    connection.destroy();
    this.#update(connection);
    this.#onRefused('evicted');
  }

  /** Lets connections be closed to make room that are not new any more. */
  #growUp(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [connection, sinceMs] of this.#young) {
      if (nowMs - sinceMs < untouchedMs) return;
      this.#young.delete(connection);
      this.#sort(connection);
    }
  }

  #update(connection: Connection): void {
    const use = this.#open.get(connection);
    if (use === undefined) return;
    this.#growUp();
    const wasKnown = !use.anonymous.has(connection);
    if (connection.isKnown && !wasKnown) {
      use.anonymous.delete(connection);
      use.known++;
      this.#known++;
    }
    if (connection.isKnown) this.#remembered.set(use.address, this.#clock.monotonicMs());
    if (!connection.isOpen) {
      this.#open.delete(connection);
      this.#young.delete(connection);
      if (!use.anonymous.delete(connection)) {
        use.known--;
        this.#known--;
      }
    }
    this.#sort(connection);
  }

  /** Puts a connection among those that may be closed to make room, at the end, or takes it out. */
  #sort(connection: Connection): void {
    const isIdle = connection.isOpen && connection.isIdle;
    if (!isIdle || connection.isKnown || this.#young.has(connection)) this.#evictable.delete(connection);
    else this.#evictable.add(connection);
    if (!isIdle || !connection.isKnown) this.#idleKnown.delete(connection);
    else if (!this.#idleKnown.has(connection)) this.#idleKnown.set(connection, this.#clock.monotonicMs());
  }
}
