import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { Client, Pool, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';
import { refusingLookup } from './refusing-lookup.ts';

/**
 * How old a connection may grow, in milliseconds. It is then replaced between two calls, so that a provider whose name
 * has moved to another address is followed there.
 */
const defaultMaxAgeMs = 60_000;

/** The connection that a call is sent on, which may have carried others before. */
export class Connection {
  #socket: Socket | null = null;
  #calls = 0;

  opened(socket: Socket): void {
    this.#socket = socket;
    this.#calls = 0;
  }

  /** What it has received since it was opened, in bytes. */
  get received(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** Sends another call on it: returns what it had received by then, or `null` if this is its first one. */
  takeOver(): number | null {
    this.#calls++;
    return this.#calls === 1 ? null : this.received;
  }
}

/** A handler that wants to know its connection; called when the call is handed to one, which may not be open yet. */
export interface ConnectionUser {
  useConnection(connection: Connection): void;
}

export interface ConnectionOptions {
  /** How long a connection may take to open, in milliseconds. */
  readonly connectMs: number;
  /** Whether addresses that reach a machine's own metadata service may be connected to. */
  readonly allowLinkLocal: boolean;
  /** When a connection is replaced, in milliseconds. */
  readonly maxConnectionAgeMs?: number;
  /** Resolves names; the system's own unless a test replaces it. */
  readonly lookup?: LookupFunction;
}

/**
 * The connections to one origin. HTTP/2 stays off, because a paused reader must hold up its own stream only; certificates
 * are verified, as is undici's default.
 */
export function openConnections(origin: string, options: ConnectionOptions): Pool {
  return new Pool(origin, {
    clientTtl: options.maxConnectionAgeMs ?? defaultMaxAgeMs,
    factory: (url) => new TrackedClient(url, options),
  });
}

/** A connection for a single call. */
export function openConnection({ origin }: URL, options: ConnectionOptions): Client {
  return new TrackedClient(new URL(origin), options);
}

/** One connection at a time, which tells its calls about itself. */
class TrackedClient extends Client {
  readonly #connection: Connection;

  constructor(origin: URL, { connectMs, allowLinkLocal, lookup = systemLookup }: ConnectionOptions) {
    const connection = new Connection();
    const connect = buildConnector({
      timeout: connectMs,
      lookup: allowLinkLocal ? lookup : refusingLookup(lookup),
    });
    super(origin, {
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (target, callback) =>
        connect(target, (error, socket) => {
          if (error !== null) return callback(error, null);
          connection.opened(socket);
          callback(null, socket);
        }),
    });
    this.#connection = connection;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler & Partial<ConnectionUser>,
  ): boolean {
    handler.useConnection?.(this.#connection);
    return super.dispatch(options, handler);
  }
}
