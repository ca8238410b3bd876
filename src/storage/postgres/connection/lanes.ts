import type { StorageError } from '../../../domain/storage-refusal.ts';
import type { SqlValue } from '../../engine.ts';
import { KeptConnection } from './connection.ts';
import type { ConnectionWatch } from './connection.ts';
import type { ConnectionOptions } from './client-config.ts';

/** Some connections to the same database, side by side. */
export class Lanes {
  /** Resolves when all of them are open. */
  readonly opened: Promise<unknown>;
  readonly #connections: readonly KeptConnection[];

  constructor(count: number, options: ConnectionOptions, watch: ConnectionWatch | null = null) {
    const watchLane: ConnectionWatch = {
      lost: (fault) => {
        watch?.lost(fault);
        if (fault.reason === 'slow') this.#replaceIdle();
      },
      regained: () => watch?.regained(),
    };
    this.#connections = Array.from({ length: count }, () => new KeptConnection(options, watchLane));
    this.opened = Promise.all(this.#connections.map(({ opened }) => opened));
    this.opened.catch(() => {});
  }

  /** Why none of them is open; `null` while one is. */
  get fault(): StorageError | null {
    const faults = this.#connections.map(({ fault }) => fault);
    return faults.includes(null) ? null : (faults[0] ?? null);
  }

  /**
   * The same one for the same value, so that what has to wait for each other waits here rather than there. While that one
   * is lost it is the next one that is open.
   */
  of(value: SqlValue | undefined): KeptConnection {
    const at = hash(String(value));
    if (this.#at(at).fault === null) return this.#at(at);
    const next = this.#connections.findIndex((_, index) => this.#at(at + index).fault === null);
    return this.#at(at + Math.max(0, next));
  }

  /** The open one with the fewest waiting queries: a short read does not wait for a long one while another lane is free. */
  leastBusy(): KeptConnection {
    const open = this.#connections.filter(({ fault }) => fault === null);
    return open.toSorted((a, b) => a.waiting - b.waiting)[0] ?? this.#at(0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  /** A network that has forgotten one connection without a word has often forgotten all of them. */
  #replaceIdle(): void {
    for (const connection of this.#connections) connection.replaceIdle();
  }

  #at(number: number): KeptConnection {
    const connection = this.#connections[number % this.#connections.length];
    if (connection === undefined) throw new Error('there are no connections');
    return connection;
  }
}

/** A number of 31 bits that spreads texts evenly (FNV-1a). */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 1;
}
