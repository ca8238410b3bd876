import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many answers may be owed on a connection before its reading stops. */
const maxOwedWhileReading = 8;

/** How many before it is closed, with a known key and without: what arrives in one chunk is parsed all the same. */
const maxOwedToKnown = 64;
const maxOwedToAnonymous = 16;

/** How long a connection of clients may stay idle: longer than the 60 s of load balancers, in milliseconds. */
const clientKeepAliveMs = 65_000;

/** How much longer it is kept than its client is told, so that a request sent at the last moment is not lost, in ms. */
const keepAliveSlackMs = 1_000;

/** A request that has not arrived in time. */
interface LateRequest {
  /** How long its client may take for the rest once it may send, in milliseconds. */
  readonly restMs: number;
  readonly refuse: () => void;
}

/** What one connection tells the table of connections, and asks it. */
export interface ConnectionEvents {
  /** An answer is owed, the last one is done, a known key came, or it is closed. */
  readonly changed: (connection: Connection) => void;
  /** Too many answers were owed on it. */
  readonly overrun: (connection: Connection) => void;
  /** Whether it comes from an address at which a valid key is in use, or was lately: that may be a proxy. */
  readonly isOfClients: (connection: Connection) => boolean;
}

const connections = new WeakMap<Socket, Connection>();

/** The connection of a socket of one of our own servers; there is none in an app that mounted a router. */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/** One connection of a listener: the answers owed on it, and whether a valid key was presented on it. */
export class Connection {
  readonly socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #owed = new Set<ServerResponse>();
  #latest: IncomingMessage | null = null;
  #isKnown = false;
  #isHeld = false;
  /** When the reading of the latest request's body began, in milliseconds; `null` before that. */
  #bodyWantedMs: number | null = null;
  /** When reading last went on after too many answers had been owed, in milliseconds. */
  #releasedMs = -Infinity;
  /** What happens to a request that was late while we kept its client from sending; `null` without one. */
  #excused: LateRequest | null = null;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.socket = socket;
    this.#events = events;
    connections.set(socket, this);
    // Node takes its own listener off before it hands a socket out (`connect`), and an error without one ends the process.
    socket.on('error', () => {});
    socket.on('close', () => events.changed(this));
    // Node resumes a socket after every message, also after one that was in the same chunk as the one that was too many.
    socket.on('resume', () => {
      if (this.#isHeld) socket.pause();
    });
  }

  get isOpen(): boolean {
    return !this.socket.destroyed;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Whether nothing is owed on it: between two requests, or before the first one has arrived. */
  get isIdle(): boolean {
    return this.#owed.size === 0;
  }

  /**
   * Whether a refusal may be written to the socket itself: nothing is owed, or only the answer to the very request that
   * can't be read to its end, of which nothing has gone out.
   */
  get mayTakeRawRefusal(): boolean {
    const [first, ...others] = this.#owed;
    if (first === undefined) return true;
    return others.length === 0 && !first.headersSent && !first.req.complete;
  }

  /** A valid key was presented: the connection belongs to a client, and is kept as long as clients expect. */
  recognize(): void {
    if (this.#isKnown) return;
    this.#isKnown = true;
    this.#events.changed(this);
    for (const response of this.#owed) this.#promiseKeepAlive(response);
  }

  /**
   * An answer is owed from now on. False for one too many, which closes the connection: Node parses everything in a
   * chunk at one go, so stopping to read alone would let two thousand requests run.
   */
  owe(request: IncomingMessage, response: ServerResponse): boolean {
    if (!this.isOpen) return false;
    if (this.#owed.size >= (this.#isKnown ? maxOwedToKnown : maxOwedToAnonymous)) {
      skipRestOfChunk(this.socket);
      this.destroy();
      this.#events.overrun(this);
      return false;
    }
    this.#owed.add(response);
    this.#latest = request;
    this.#bodyWantedMs = null;
    this.#promiseKeepAlive(response);
    response.once('close', () => this.#paid(response));
    this.#events.changed(this);
    // After the chunk: the rest of this request may be in it, and a body that has begun has to be read to its end.
    if (this.#owed.size >= maxOwedWhileReading) setImmediate(() => this.#hold());
    return true;
  }

  /** The body of a request is read from now on, after the request may have waited for a slot. */
  wantBody(request: IncomingMessage): void {
    if (request !== this.#latest) return;
    this.#bodyWantedMs = performance.now();
    this.#giveRest();
  }

  /**
   * Whether a request that is late by Node's clock is late because of us: a connection is not read while too many
   * answers are owed, and a body not while its request waits for a slot. Its client has the rest of the request to send
   * once we read, within a time of its own; then it is refused after all: Node reports a late request once.
   */
  excuse(late: LateRequest): boolean {
    const isBody = this.#latest?.complete === false;
    if (isBody ? this.#bodyWantedMs === null && !this.isIdle : this.#isHeld) {
      this.#excused = late;
      return true;
    }
    const sinceMs = isBody ? (this.#bodyWantedMs ?? -Infinity) : this.#releasedMs;
    const leftMs = sinceMs + late.restMs - performance.now();
    if (leftMs > 0) this.#refuseIn(leftMs, late);
    return leftMs > 0;
  }

  /** Destroys the connection, and ends the answers that wait for their turn: Node forgets them after a `connect`. */
  destroy(): void {
    this.socket.destroy();
    for (const response of this.#owed) response.destroy();
  }

  #paid(response: ServerResponse): void {
    this.#owed.delete(response);
    if (this.#isHeld && this.#owed.size < maxOwedWhileReading) {
      this.#isHeld = false;
      this.#releasedMs = performance.now();
      this.#giveRest();
      this.socket.resume();
    }
    if (this.#owed.size === 0 && this.#isOfClients)
      this.socket.setTimeout(clientKeepAliveMs + keepAliveSlackMs);
    this.#events.changed(this);
  }

  #giveRest(): void {
    if (this.#excused !== null) this.#refuseIn(this.#excused.restMs, this.#excused);
    this.#excused = null;
  }

  /** Refuses a late request after that time, unless it has arrived by then. */
  #refuseIn(delayMs: number, { refuse }: LateRequest): void {
    const latest = this.#latest;
    const isHead = latest === null || latest.complete;
    const timer = setTimeout(() => {
      if (this.#latest === latest && (isHead || !latest.complete)) refuse();
    }, delayMs);
    this.socket.once('close', () => clearTimeout(timer));
  }

  #hold(): void {
    if (this.#owed.size < maxOwedWhileReading || this.#latest?.complete !== true) return;
    this.#isHeld = true;
    this.socket.pause();
  }

  get #isOfClients(): boolean {
    return this.#isKnown || this.#events.isOfClients(this);
  }

  /** The server's own time is the short one for strangers. */
  #promiseKeepAlive(response: ServerResponse): void {
    if (this.#isOfClients && response.shouldKeepAlive && !response.headersSent)
      response.setHeader('keep-alive', `timeout=${clientKeepAliveMs / 1_000}`);
  }
}

/**
 * Has Node's parser pass over what is left of a chunk: there is no public way to stop it in the middle, and the requests,
 * responses and errors that it would make of two thousand heads cost more than serving a few.
 */
function skipRestOfChunk(socket: Socket): void {
  const { parser } = socket as { readonly parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => 0;
}
