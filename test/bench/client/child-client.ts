import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { spreadOf } from '../report/statistics.ts';
import { AnswerReader } from './answer-reader.ts';
import type { AllOpen, LoadOrder, LoadResult } from './order.ts';

/**
 * The load generator, in a process of its own, on plain sockets: it sends the requests of one order at a time, checks
 * every answer to its end, and replies with what it found.
 */

/** All connections read into the same memory: a read is looked at before the next one begins. */
const readBytes = 65_536;
const readBuffer = Buffer.allocUnsafe(readBytes);

/** The most bytes of a read of a slow reader. */
const slowReadBytes = 4_096;

/** How often a connection that was closed between two answers is opened again for one request. */
const maxReopens = 3;

class Load {
  readonly #order: LoadOrder;
  readonly #requestBytes: Buffer;
  readonly #done: (result: LoadResult) => void;
  readonly #startedMs = performance.now();
  readonly #firstTextMs: number[] = [];
  readonly #totalMs: number[] = [];
  readonly #failures: Record<string, number> = {};
  readonly #connections = new Set<Connection>();
  #begun = 0;
  #answers = 0;
  #ended = 0;
  #events = 0;
  #bytes = 0;
  #openWithText = 0;
  /** The starts that were due so far. */
  #due = 0;
  #isOver = false;
  /** Connections without a request. */
  readonly #idle: Connection[] = [];
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(order: LoadOrder, done: (result: LoadResult) => void) {
    this.#order = order;
    this.#done = done;
    const headers = { host: `127.0.0.1:${order.port}`, 'content-type': 'application/json', ...order.headers };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `POST ${order.path} HTTP/1.1\r\n${lines.join('')}content-length: ${Buffer.byteLength(order.body)}\r\n\r\n`;
    this.#requestBytes = Buffer.from(head + order.body);
    this.#timers.push(setTimeout(() => this.#cutOff(), order.deadlineMs));
    if (order.startsPerSecond !== null) this.#timers.push(setInterval(() => this.#keepUp(), 1));
    else while (this.#mayBegin()) this.#open();
  }

  get order(): LoadOrder {
    return this.#order;
  }

  get requestBytes(): Buffer {
    return this.#requestBytes;
  }

  /** A connection has finished its answer and asks for the next request; without one it is closed. */
  next(connection: Connection): void {
    if (this.#order.startsPerSecond === null && this.#mayBegin()) {
      this.#begun++;
      return connection.send();
    }
    this.#idle.push(connection);
  }

  sawText(elapsedMs: number): void {
    this.#firstTextMs.push(elapsedMs);
    if (++this.#openWithText === this.#order.atOnce)
      process.send?.({ kind: 'all open', elapsedMs: performance.now() - this.#startedMs } satisfies AllOpen);
  }

  sawBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  ended(fault: string | null, reader: AnswerReader, elapsedMs: number): void {
    this.#ended++;
    this.#events += reader.facts.events;
    if (reader.facts.hasText) this.#openWithText--;
    if (fault === null) {
      this.#answers++;
      this.#totalMs.push(elapsedMs);
    } else this.#failures[fault] = (this.#failures[fault] ?? 0) + 1;
    if (this.#ended === this.#order.requests) this.#finish();
  }

  #mayBegin(): boolean {
    if (this.#isOver) return false;
    return this.#begun < this.#order.requests && this.#begun - this.#ended < this.#order.atOnce;
  }

  /** Begins the requests that are due at the rate. Starts for which nothing is free are not made up for in a burst. */
  #keepUp(): void {
    const due = Math.floor(
      ((performance.now() - this.#startedMs) / 1_000) * (this.#order.startsPerSecond ?? 0),
    );
    for (; this.#due < due; this.#due++) if (this.#mayBegin()) this.#open();
  }

  #open(): void {
    this.#begun++;
    const connection = this.#idle.pop() ?? new Connection(this);
    this.#connections.add(connection);
    connection.send();
  }

  #cutOff(): void {
    for (const connection of this.#connections) connection.cutOff();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
    const unsent = this.#order.requests - this.#begun;
    if (unsent > 0 && this.#order.readPauseMs === null)
      this.#failures['not sent before the deadline'] = unsent;
    this.#done({
      kind: 'result',
      answers: this.#answers,
      failures: this.#failures,
      events: this.#events,
      bytes: this.#bytes,
      elapsedMs: performance.now() - this.#startedMs,
      firstText: spreadOf(this.#firstTextMs),
      total: spreadOf(this.#totalMs),
    });
  }
}

/** A connection of a load: one request after the other. */
class Connection {
  readonly #load: Load;
  readonly #reader = new AnswerReader();
  #socket: Socket | null = null;
  #sentMs = 0;
  #isOpen = false;
  #hadText = false;
  #reopens = 0;

  constructor(load: Load) {
    this.#load = load;
  }

  send(): void {
    this.#reader.reset();
    this.#isOpen = true;
    this.#hadText = false;
    this.#reopens = 0;
    this.#sentMs = performance.now();
    this.#write();
  }

  /** Ends at the deadline: a slow reader has read for long enough, anything else has failed. */
  cutOff(): void {
    const isSlow = this.#load.order.readPauseMs !== null;
    this.#end(isSlow && this.#hadText ? null : 'open at the deadline');
  }

  close(): void {
    this.#isOpen = false;
    this.#socket?.destroy();
    this.#socket = null;
  }

  #write(): void {
    this.#socket ??= this.#connect();
    this.#socket.write(this.#load.requestBytes);
  }

  #connect(): Socket {
    const { port, readPauseMs } = this.#load.order;
    const read = (bytes: number, buffer: Buffer): boolean => {
      this.#read(buffer.subarray(0, bytes));
      if (readPauseMs === null) return true;
      setTimeout(() => socket.resume(), readPauseMs);
      return false;
    };
    const buffer = readPauseMs === null ? readBuffer : Buffer.allocUnsafe(slowReadBytes);
    const onread = { buffer, callback: read as (bytes: number, buffer: Uint8Array) => boolean };
    const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#closed(socket));
    return socket;
  }

  #read(bytes: Buffer): void {
    if (!this.#isOpen) return;
    const { facts } = this.#reader;
    this.#load.sawBytes(bytes.length);
    this.#reader.push(bytes);
    if (facts.hasText && !this.#hadText) {
      this.#hadText = true;
      this.#load.sawText(performance.now() - this.#sentMs);
    }
    if (facts.isAtEnd) this.#end(this.#faultOf());
  }

  #faultOf(): string | null {
    const { status, events, isComplete } = this.#reader.facts;
    const wanted = this.#load.order.events;
    if (status !== 200) return `status ${status}`;
    if (!isComplete) return 'not complete';
    return wanted === null || events === wanted ? null : `${events} events`;
  }

  #closed(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    if (!this.#isOpen) return;
    const { facts } = this.#reader;
    this.#reader.closed();
    if (facts.isAtEnd) return this.#end(this.#faultOf());
    // A server may close an idle connection while the next request is on its way: HTTP lets it be sent again.
    if (facts.status === 0 && this.#reopens++ < maxReopens) return this.#write();
    this.#end('connection broken');
  }

  #end(fault: string | null): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (fault !== null || this.#reader.facts.closes) this.close();
    this.#load.ended(fault, this.#reader, performance.now() - this.#sentMs);
    this.#load.next(this);
  }
}

process.on('message', (order: LoadOrder) => {
  void new Load(order, (result) => process.send?.(result));
});
process.once('disconnect', () => process.exit());
