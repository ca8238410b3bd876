import type { StorageError } from '../../domain/storage-refusal.ts';
import type { SqlValue } from '../engine.ts';
import { KeptConnection } from './connection.ts';
import type { ConnectionOptions } from './connection.ts';

/** Some connections to the same database, side by side. */
export class Lanes {
  /** Resolves when all of them are open. */
  readonly opened: Promise<unknown>;
  readonly #connections: readonly KeptConnection[];
  #last = 0;

  constructor(count: number, options: ConnectionOptions) {
    this.#connections = Array.from({ length: count }, () => new KeptConnection(options));
    this.opened = Promise.all(this.#connections.map(({ opened }) => opened));
    this.opened.catch(() => {});
  }

  /** Why one of them is not open; `null` while all are. */
  get fault(): StorageError | null {
    return this.#connections.find(({ fault }) => fault !== null)?.fault ?? null;
  }

  /** Always the same one for the same value, so that what has to wait for each other waits here rather than there. */
  of(value: SqlValue | undefined): KeptConnection {
    return this.#at(hash(String(value)));
  }

  /** Each in turn. */
  next(): KeptConnection {
    return this.#at(++this.#last);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
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
