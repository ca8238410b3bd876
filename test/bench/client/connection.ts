import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { AnswerReader } from './answer-reader.ts';
import type { AnswerFacts } from './answer-reader.ts';
import { machineMs } from '../simulator/times.ts';
import type { LoadOrder } from './order.ts';

/** All connections read into the same memory: a read is looked at before the next one begins. */
const readBytes = 65_536;
const readBuffer = Buffer.allocUnsafe(readBytes);

/** The most bytes of a read of a slow reader. */
const slowReadBytes = 4_096;

/** The load that a connection belongs to, and reports to. */
export interface ConnectionOwner {
  readonly order: LoadOrder;
  /** The bytes of the next request, and the port of a new connection. */
  nextRequest(): Buffer;
  nextPort(): number;
  sawBytes(bytes: number): void;
  /** The first text of an answer came, by the machine's clock; its request was sent at `sentMs`. */
  sawText(facts: AnswerFacts, sentMs: number, nowMs: number): void;
  /** A text came that took so long from the upstream's writing until it was read here. */
  sawStamped(wayMs: number): void;
  /** An answer has ended: well, or with what was wrong with it. */
  ended(fault: string | null, facts: AnswerFacts, elapsedMs: number): void;
  /** A request was sent again, as the connection that was kept after an answer was closed before a byte of the next. */
  sentAgain(): void;
  /** Bytes came on a connection whose answer had already ended. */
  sawStrayBytes(): void;
  /** The connection is free for the next request. */
  next(connection: Connection): void;
}

/** A connection of a load: one request after the other. */
export class Connection {
  readonly #load: ConnectionOwner;
  readonly #reader: AnswerReader;
  readonly #port: number;
  #socket: Socket | null = null;
  #request: Buffer = Buffer.alloc(0);
  #sentMs = 0;
  /** When the present bytes were read, where it is asked for; one time for all texts in them. */
  #readMs = 0;
  #isOpen = false;
  #hadText = false;
  /** Whether a byte of the present answer has come. */
  #hasBytes = false;
  /** Whether the socket has completed an answer and was kept: its server may close it while it has no request. */
  #wasKept = false;

  constructor(load: ConnectionOwner) {
    this.#load = load;
    this.#port = load.nextPort();
    this.#reader = new AnswerReader(
      load.order.stamps === null ? null : (writtenMs) => load.sawStamped(this.#readMs - writtenMs),
    );
  }

  send(): void {
    this.#reader.reset();
    this.#isOpen = true;
    this.#hadText = false;
    this.#hasBytes = false;
    this.#request = this.#load.nextRequest();
    this.#sentMs = machineMs();
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
    this.#wasKept = false;
  }

  #write(): void {
    this.#socket ??= this.#connect();
    this.#socket.write(this.#request);
  }

  #connect(): Socket {
    const { readPauseMs } = this.#load.order;
    const read = (bytes: number, buffer: Buffer): boolean => {
      this.#read(buffer.subarray(0, bytes));
      if (readPauseMs === null) return true;
      setTimeout(() => socket.resume(), readPauseMs);
      return false;
    };
    const buffer = readPauseMs === null ? readBuffer : Buffer.allocUnsafe(slowReadBytes);
    const onread = { buffer, callback: read as (bytes: number, buffer: Uint8Array) => boolean };
    const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true, onread });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#closed(socket));
    return socket;
  }

  #read(bytes: Buffer): void {
    if (!this.#isOpen) return this.#load.sawStrayBytes();
    const { facts } = this.#reader;
    this.#hasBytes = true;
    this.#load.sawBytes(bytes.length);
    if (this.#load.order.stamps !== null) this.#readMs = machineMs();
    this.#reader.push(bytes);
    if (facts.hasText && !this.#hadText) {
      this.#hadText = true;
      this.#load.sawText(facts, this.#sentMs, machineMs());
    }
    if (facts.isAtEnd) this.#end(this.#faultOf());
  }

  #faultOf(): string | null {
    const { status, events, stamps, isComplete, fault } = this.#reader.facts;
    const { events: wanted, stamps: wantedStamps } = this.#load.order;
    if (status !== 200) return `status ${status}`;
    if (fault !== null) return fault;
    if (!isComplete) return 'not complete';
    if (wanted !== null && events !== wanted) return `${events} events`;
    return wantedStamps === null || stamps === wantedStamps ? null : `${stamps} texts with a time`;
  }

  #closed(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    const wasKept = this.#wasKept;
    this.#wasKept = false;
    if (!this.#isOpen) return;
    const { facts } = this.#reader;
    this.#reader.closed();
    if (facts.isAtEnd) return this.#end(this.#faultOf());
    // A server may close an idle connection while the next request is on its way: HTTP lets it be sent again.
    // On a fresh connection the same is a dropped request, which must not be hidden.
    if (wasKept && !this.#hasBytes) {
      this.#load.sentAgain();
      return this.#write();
    }
    this.#end('connection broken');
  }

  #end(fault: string | null): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (fault !== null || this.#reader.facts.closes) this.close();
    else this.#wasKept = this.#socket !== null;
    this.#load.ended(fault, this.#reader.facts, machineMs() - this.#sentMs);
    this.#load.next(this);
  }
}
