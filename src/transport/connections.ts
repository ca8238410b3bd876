import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
// Not the index, which also loads fetch, WebSocket, caches and mocks: a tenth of a start.
import Client from 'undici/lib/dispatcher/client.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { createConnector } from './connector.ts';
import type { ConnectionOptions } from './connector.ts';
import { skipInterimAnswers } from './interim-answers.ts';
import { targetOf } from './socket-target.ts';
import type { Connector } from './socket-target.ts';

/**
 * The maximum age of a connection, in milliseconds. An older one is replaced between two calls, so that a host name that
 * moves to another address is followed.
 */
const defaultMaxAgeMs = 60_000;

/** One upstream connection: how much it has received, and how many calls it has carried. */
export class UpstreamConnection {
  #socket: Socket | null = null;
  #expectAnswer: (() => void) | null = null;
  #calls = 0;

  /** Starts over with a new socket. */
  opened(socket: Socket): void {
    this.#socket = socket;
    this.#expectAnswer = skipInterimAnswers(socket);
    this.#calls = 0;
  }

  /** Bytes received since it was opened. */
  get receivedBytes(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** Counts a call that is sent on it. Returns the bytes received before; `null` for its first call. */
  takeOver(): number | null {
    this.#calls++;
    this.#expectAnswer?.();
    return this.#calls === 1 ? null : this.receivedBytes;
  }
}

/** A dispatch handler that keeps track of its connection. */
export interface ConnectionUser {
  /** Called when the call is handed to a connection, which may not be open yet. */
  useConnection(connection: UpstreamConnection): void;
}

/**
 * Opens a pool of connections to one origin; `openOnce` opens one for a single call. HTTP/2 stays off: a paused reader must
 * not stall other streams. Certificates are verified, as is undici's default.
 */
export function openConnections(origin: string, options: ConnectionOptions) {
  const connect = createConnector(options);
  return {
    pool: new Pool(origin, {
      clientTtl: options.maxConnectionAgeMs ?? defaultMaxAgeMs,
      factory: (url) => new TrackedClient(url, connect),
    }),
    openOnce: () => new TrackedClient(new URL(origin), connect),
  };
}

/** A client with one connection at a time, which it hands to every call. */
class TrackedClient extends Client {
  readonly #connection: UpstreamConnection;

  constructor(origin: URL, connect: Connector) {
    const connection = new UpstreamConnection();
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

/** Opens a connection to an upstream, through its proxy if it has one. */
type OpenSocket = (callback: (error: Error | null, socket: Socket | null) => void) => void;

/**
 * Connections to an upstream for the passthrough, through Node's own client but opened like those of model calls. None is
 * kept alive: one that the upstream closes at the moment of reuse looks like an upstream that is down, and a streamed
 * request body can't be sent again. How they are opened may be replaced.
 */
export function createAgent(url: URL, options: ConnectionOptions): Agent & { open: OpenSocket } {
  const connector = createConnector(options);
  const target = targetOf(url, url.protocol);
  const open: OpenSocket = (callback) =>
    connector(target, (error, socket) => (error === null ? callback(null, socket) : callback(error, null)));
  const plain =
    url.protocol === 'https:' ? new TlsAgent({ keepAlive: false }) : new Agent({ keepAlive: false });
  const agent = Object.assign(plain, { open });
  agent.createConnection = (_options, callback) => {
    agent.open((error, socket) => callback?.(error, socket as Socket));
    return undefined;
  };
  return agent;
}
