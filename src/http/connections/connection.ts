import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { OwnResponse } from '../answers/own-response.ts';
import { answerHalfClosed } from './half-closed.ts';
import { lingerAfter } from './lingering-close.ts';

/** How many answers may be pending on a connection before reading from it stops. */
const maxPendingWhileReading = 8;

/**
 * How many pending answers close a connection, with a known key and without. To stop reading is not enough: Node parses
 * all of a chunk that has arrived.
 */
const maxPendingOfKnown = 64;
const maxPendingOfAnonymous = 16;

/** How much longer it stays open than announced, in milliseconds: a request sent at the last moment is not lost. */
const keepAliveSlackMs = 1_000;

/** A request that has not arrived within Node's time limit. */
interface LateRequest {
  /** How long the client may take for the rest of the request once it is read again, in milliseconds. */
  readonly restMs: number;
  readonly refuse: () => void;
}

/** How long connections may stay idle after an answer, in milliseconds and as the header that announces it. */
interface KeepAlive {
  readonly idleMs: number;
  readonly header: string;
}

/** The side of the connection table that a connection calls. */
export interface ConnectionEvents {
  /** The connection became busy, idle, known or closed. */
  readonly changed: (connection: Connection) => void;
  /** The connection was closed for too many pending answers. */
  readonly overrun: (connection: Connection) => void;
  /** Whether a valid key is in use at the connection's address, or was lately: it may be a proxy for many clients. */
  readonly isClientAddress: (connection: Connection) => boolean;
  /** How long a client's connection may stay idle. */
  readonly keepAlive: KeepAlive;
}

const connections = new WeakMap<Socket, Connection>();

/** The connection of a socket of our own servers; `undefined` for a socket of an app that mounts the router. */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * One TCP connection of our own listeners, which may carry many requests: its pending answers, whether it is read, and
 * whether a valid key was presented on it. The client's side of a single request is `HttpClientConnection`.
 */
export class Connection {
  /** The socket that the system accepted; below that of TLS, it counts the bytes that are really sent. */
  readonly rawSocket: Socket;
  #socket: Socket;
  readonly #events: ConnectionEvents;
  /** In the order of their requests. */
  readonly #pending: OwnResponse[] = [];
  /** How many pending answers can be sent: Node sends none behind one that broke off before its turn. */
  #sendable = Infinity;
  /** The request that arrived last; `null` when nothing of it can be late, so that its memory is free. */
  #latest: IncomingMessage | null = null;
  /** How many requests have arrived. */
  #arrived = 0;
  #isKnown = false;
  /** How many bytes had arrived when the latest answer was sent; `null` before the first. */
  #bytesWhenIdle: number | null = null;
  #isReadingStopped = false;
  /** When reading the latest request's body began, in milliseconds; `null` before that. */
  #bodyStartMs: number | null = null;
  /** When reading last resumed after too many pending answers, in milliseconds. */
  #resumedMs = -Infinity;
  /** A late request whose time to arrive starts when it is read again; `null` without one. */
  #extended: LateRequest | null = null;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.rawSocket = socket;
    this.#socket = socket;
    this.#events = events;
    this.#follow(socket);
  }

  /** The socket of requests and answers. */
  get socket(): Socket {
    return this.#socket;
  }

  /** Goes on over TLS, after the handshake. */
  secure(socket: Socket): void {
    this.#socket = socket;
    this.#follow(socket);
  }

  #follow(socket: Socket): void {
    connections.set(socket, this);
    // Node removes its own listener before it hands a socket out (`connect`); then an error would end the process.
    socket.on('error', () => {});
    socket.on('close', () => this.#events.changed(this));
    socket.on('end', () => {
      if (socket === this.#socket) answerHalfClosed(this.rawSocket, this.#pending);
    });
    // Node resumes a socket after every message, including one in the same chunk as the message that stopped reading.
    socket.on('resume', () => {
      if (this.#isReadingStopped) socket.pause();
    });
  }

  get isOpen(): boolean {
    return !this.socket.destroyed;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Whether no answer is pending: between two requests, or before the first one has arrived. */
  get isIdle(): boolean {
    return this.#pending.length === 0;
  }

  /** Whether it is idle after an answer, and nothing of a next request has arrived. */
  get isQuiet(): boolean {
    return this.isIdle && this.socket.bytesRead === this.#bytesWhenIdle;
  }

  /** The answers that are not sent yet, in the order of their requests. */
  get pending(): readonly OwnResponse[] {
    return this.#pending;
  }

  /** Marks the connection as a client's, after a valid key: it is kept open as long as clients expect. */
  recognize(): void {
    if (this.#isKnown) return;
    this.#isKnown = true;
    this.#events.changed(this);
    for (const response of this.#pending) this.#announceKeepAlive(response);
  }

  /**
   * Counts the answer to a new request as pending. Returns whether the request may run. When there are too many, it
   * may not, and the connection is closed: Node parses all of a chunk at once, so if reading only stopped, two thousand
   * requests could still run. Nor may one that can't be answered, because an answer before it closes the connection:
   * its client repeats it elsewhere, and would pay for both.
   */
  addPending(request: IncomingMessage, response: OwnResponse): boolean {
    if (!this.isOpen) return false;
    if (this.#pending.length >= (this.#isKnown ? maxPendingOfKnown : maxPendingOfAnonymous)) {
      skipRestOfChunk(this.socket);
      this.destroy();
      this.#events.overrun(this);
      return false;
    }
    const canBeAnswered =
      this.socket.writable && this.#pending.every(({ shouldKeepAlive }) => shouldKeepAlive);
    this.#pending.push(response);
    this.#latest = request;
    this.#arrived++;
    this.#bodyStartMs = null;
    this.#announceKeepAlive(response);
    response.on('close', () => this.#removePending(response));
    if (this.#pending.length === 1) this.#events.changed(this);
    // After the chunk, because it may hold the rest of this request: a body that has begun must be read to its end.
    if (this.#pending.length >= maxPendingWhileReading) setImmediate(() => this.#stopReading());
    if (!canBeAnswered) lingerAfter(response);
    return canBeAnswered;
  }

  /** Notes that reading a request's body begins, perhaps after the request waited for a slot. */
  startBody(request: IncomingMessage): void {
    if (request !== this.#latest) return;
    // What has arrived is not late, whatever its client was granted while it waited for a slot.
    if (request.complete) return void (this.#extended = null);
    this.#bodyStartMs = performance.now();
    this.#startRestTimer();
  }

  /**
   * Gives a late request more time if the gateway itself delayed it: a connection is not read while too many answers
   * are pending, nor a body while its request waits for a slot. The client then has `restMs` from when reading resumes;
   * after that this class refuses the request, because Node reports a late request only once. Returns whether it did.
   */
  extendTime(late: LateRequest): boolean {
    const isBody = this.#latest?.complete === false;
    if (isBody ? this.#bodyStartMs === null && !this.isIdle : this.#isReadingStopped) {
      this.#extended = late;
      return true;
    }
    const sinceMs = isBody ? (this.#bodyStartMs ?? -Infinity) : this.#resumedMs;
    const leftMs = sinceMs + late.restMs - performance.now();
    if (leftMs > 0) this.#refuseIn(leftMs, late);
    return leftMs > 0;
  }

  /** Destroys the connection and its pending answers: after a `connect` Node would never end them. */
  destroy(): void {
    this.socket.destroy();
    for (const response of this.#pending) response.destroy();
  }

  #removePending(response: OwnResponse): void {
    const at = this.#pending.indexOf(response);
    this.#pending.splice(at, 1);
    if (at > 0 && !response.writableFinished) this.#sendable = Math.min(this.#sendable, at);
    else if (at < this.#sendable) this.#sendable--;
    if (this.#sendable === 0 && this.isOpen) this.destroy();
    if (this.#isReadingStopped && this.#pending.length < maxPendingWhileReading) {
      this.#isReadingStopped = false;
      this.#resumedMs = performance.now();
      this.#startRestTimer();
      this.socket.resume();
    }
    if (!this.isIdle) return;
    this.#bytesWhenIdle = this.socket.bytesRead;
    if (this.#latest?.complete === true) this.#latest = null;
    if (this.#isClient) this.socket.setTimeout(this.#events.keepAlive.idleMs + keepAliveSlackMs);
    this.#events.changed(this);
  }

  #startRestTimer(): void {
    if (this.#extended !== null) this.#refuseIn(this.#extended.restMs, this.#extended);
    this.#extended = null;
  }

  /** Refuses a late request after `delayMs`, unless it has arrived by then. */
  #refuseIn(delayMs: number, { refuse }: LateRequest): void {
    const [latest, arrived] = [this.#latest, this.#arrived];
    const isHead = latest === null || latest.complete;
    const timer = setTimeout(() => {
      if (this.#arrived === arrived && (isHead || !latest.complete)) refuse();
    }, delayMs);
    this.socket.once('close', () => clearTimeout(timer));
  }

  #stopReading(): void {
    if (this.#pending.length < maxPendingWhileReading || this.#latest?.complete !== true) return;
    this.#isReadingStopped = true;
    this.socket.pause();
  }

  get #isClient(): boolean {
    return this.#isKnown || this.#events.isClientAddress(this);
  }

  /** Announces the longer keep-alive of clients; Node's own header has the short one for anonymous connections. */
  #announceKeepAlive(response: OwnResponse): void {
    if (this.#isClient && response.shouldKeepAlive && !response.headersSent)
      response.keepAlive = this.#events.keepAlive.header;
  }
}

/**
 * Makes Node's parser ignore the rest of a chunk. There is no public way to stop it in the middle, and to create
 * requests, responses and errors for two thousand heads costs more than to serve a few.
 */
function skipRestOfChunk(socket: Socket): void {
  const { parser } = socket as { readonly parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => 0;
}
