import { spreadOf } from '../report/statistics.ts';
import type { AnswerFacts } from './answer-reader.ts';
import { Connection } from './connection.ts';
import type { ConnectionOwner } from './connection.ts';
import type { AllOpen, LoadOrder, LoadResult } from './order.ts';

/** Sends the requests of one order, and reports when all are open at once, and at the end. */
export class Load implements ConnectionOwner {
  readonly order: LoadOrder;
  /** One request for each key. */
  readonly #requests: readonly Buffer[];
  readonly #report: (report: LoadResult | AllOpen) => void;
  readonly #startedMs = performance.now();
  readonly #firstTextMs: number[] = [];
  readonly #requestWayMs: number[] = [];
  readonly #answerWayMs: number[] = [];
  readonly #eventWayMs: number[] = [];
  readonly #totalMs: number[] = [];
  readonly #failures: Record<string, number> = {};
  readonly #connections = new Set<Connection>();
  #begun = 0;
  /** How many requests and connections were handed out, for the next key and the next port. */
  #keysUsed = 0;
  #portsUsed = 0;
  #answers = 0;
  #ended = 0;
  #events = 0;
  #bytes = 0;
  #sentAgain = 0;
  #openWithText = 0;
  #wasAllOpen = false;
  /** The starts that were due so far. */
  #due = 0;
  /** Whether no further request may begin: what the cut ends must not make room for others, which would be in no count. */
  #isCutOff = false;
  #isOver = false;
  /** Connections without a request. */
  readonly #idle: Connection[] = [];
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(order: LoadOrder, report: (report: LoadResult | AllOpen) => void) {
    this.order = order;
    this.#report = report;
    const authorizations = order.keys.map((key) => ({ authorization: `Bearer ${key}` }));
    this.#requests = (authorizations.length === 0 ? [{}] : authorizations).map((authorization) =>
      requestBytes(order, authorization),
    );
    this.#timers.push(setTimeout(() => this.#cutOff(), order.deadlineMs));
    if (order.startsPerSecond !== null) this.#timers.push(setInterval(() => this.#keepUp(), 1));
    else while (this.#mayBegin()) this.#open();
  }

  /** The bytes of the next request. */
  nextRequest(): Buffer {
    return nextOf(this.#requests, this.#keysUsed++);
  }

  /** The port of a new connection. */
  nextPort(): number {
    return nextOf(this.order.ports, this.#portsUsed++);
  }

  /** A connection has finished its answer and takes the next request, or waits for one. */
  next(connection: Connection): void {
    if (this.order.startsPerSecond === null && this.#mayBegin()) {
      this.#begun++;
      return connection.send();
    }
    this.#idle.push(connection);
  }

  sawText({ times }: AnswerFacts, sentMs: number, nowMs: number): void {
    this.#firstTextMs.push(nowMs - sentMs);
    if (times !== null) {
      this.#requestWayMs.push(times.arrivedMs - sentMs);
      this.#answerWayMs.push(nowMs - times.textMs);
    }
    if (++this.#openWithText < this.order.atOnce || this.#wasAllOpen) return;
    this.#wasAllOpen = true;
    this.#report({ kind: 'all open', elapsedMs: performance.now() - this.#startedMs });
  }

  sawStamped(wayMs: number): void {
    this.#eventWayMs.push(wayMs);
  }

  sawBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  sentAgain(): void {
    this.#sentAgain++;
  }

  sawStrayBytes(): void {
    this.#countFailures('bytes after the end', 1);
  }

  ended(fault: string | null, facts: AnswerFacts, elapsedMs: number): void {
    this.#ended++;
    this.#events += facts.events;
    if (facts.hasText) this.#openWithText--;
    if (fault === null) {
      this.#answers++;
      this.#totalMs.push(elapsedMs);
    } else this.#countFailures(fault, 1);
    if (this.#ended === this.order.requests) this.#finish();
  }

  #countFailures(fault: string, times: number): void {
    this.#failures[fault] = (this.#failures[fault] ?? 0) + times;
  }

  #mayBegin(): boolean {
    if (this.#isCutOff) return false;
    return this.#begun < this.order.requests && this.#begun - this.#ended < this.order.atOnce;
  }

  /** Begins the requests that are due at the rate. Starts for which nothing is free are not made up for in a burst. */
  #keepUp(): void {
    const due = Math.floor(
      ((performance.now() - this.#startedMs) / 1_000) * (this.order.startsPerSecond ?? 0),
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
    this.#isCutOff = true;
    for (const connection of this.#connections) connection.cutOff();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
    const unsent = this.order.requests - this.#begun;
    if (unsent > 0 && this.order.readPauseMs === null)
      this.#countFailures('not sent before the deadline', unsent);
    this.#report({
      kind: 'result',
      answers: this.#answers,
      failures: this.#failures,
      sentAgain: this.#sentAgain,
      events: this.#events,
      bytes: this.#bytes,
      elapsedMs: performance.now() - this.#startedMs,
      firstText: spreadOf(this.#firstTextMs),
      requestWay: spreadOf(this.#requestWayMs),
      answerWay: spreadOf(this.#answerWayMs),
      eventWay: spreadOf(this.#eventWayMs),
      total: spreadOf(this.#totalMs),
    });
  }
}

function requestBytes(
  { ports, path, headers, body }: LoadOrder,
  authorization: LoadOrder['headers'],
): Buffer {
  const all = {
    host: `127.0.0.1:${ports[0] ?? ''}`,
    'content-type': 'application/json',
    ...headers,
    ...authorization,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

function nextOf<Item>(items: readonly Item[], used: number): Item {
  const item = items[used % items.length];
  if (item === undefined) throw new Error('a load has no port');
  return item;
}
