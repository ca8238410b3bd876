import { StampReader } from './stamp-reader.ts';
import { readTimes } from '../simulator/times.ts';
import type { UpstreamTimes } from '../simulator/times.ts';

/** What is read of an answer so far. */
export interface AnswerFacts {
  status: number;
  /** The `data:` lines of a stream. */
  events: number;
  /** Whether any text has arrived; a role chunk has none. */
  hasText: boolean;
  /** What the first text says of the upstream's times; null where it says nothing of them. */
  times: UpstreamTimes | null;
  /** The texts of which the time of writing was read; 0 where no one asks for these times. */
  stamps: number;
  /** What breaks the framing, or comes after its end; null while it is whole. */
  fault: string | null;
  /** Whether the answer is complete, by its framing and by its own last words. */
  isComplete: boolean;
  /** Whether the framing is at its end; nothing more comes for this answer. */
  isAtEnd: boolean;
  /** Whether the server closes the connection after this answer. */
  closes: boolean;
}

/** A text that is not empty, in a delta of either protocol or in a whole message. */
const textPattern = /"(?:content|delta|text)": ?"[^"]/;

/** The last event of a complete stream: nothing may come after it. */
const lastEventPattern = /^data: \[DONE\]$|"type":"response\.completed"/;

/** What only a complete whole answer has: its finish reason or its status. */
const wholeEndPattern = /"finish_reason": ?"stop"|"status": ?"completed"/;

/** The size of a chunk, in the line before it. */
const sizePattern = /^[\da-f]+\r$/i;

/** How many bytes of an answer's end are kept to find its last words in. */
const maxTailBytes = 4_096;

const eventStart = Buffer.from('\ndata:');
const lineEnd = Buffer.from('\r\n');
const lineFeed = 0x0a;

/** Where the bytes are within the chunked framing. */
type Place = 'head' | 'size' | 'data' | 'data end' | 'trailer' | 'length' | 'until close';

/**
 * Reads answers of HTTP/1.1 without making objects for them: it undoes the chunks, counts events and finds the first text
 * and the end. Split frames, lines and marks are found all the same, wherever the network cuts them.
 */
export class AnswerReader {
  facts: AnswerFacts = emptyFacts();
  #place: Place = 'head';
  #head = '';
  #left = 0;
  #sizeLine = '';
  /** How many bytes of `lineEnd` have come after a chunk. */
  #lineEndBytes = 0;
  /** How many bytes of `eventStart` the payload so far ends with; a payload begins like a line. */
  #matched = 1;
  /** The payload before the first text, and its end. */
  #tail = '';
  /** Reads when each text was written; null leaves it. */
  readonly #stamps: StampReader | null;

  /** `sawStamp` is called with the time at which each text was written, by the machine's clock; null looks for no times. */
  constructor(sawStamp: ((writtenMs: number) => void) | null = null) {
    this.#stamps = sawStamp === null ? null : new StampReader(sawStamp);
  }

  /** Prepares for the next answer on the connection. */
  reset(): void {
    this.facts = emptyFacts();
    this.#place = 'head';
    this.#head = '';
    this.#sizeLine = '';
    this.#lineEndBytes = 0;
    this.#matched = 1;
    this.#tail = '';
    this.#stamps?.reset();
  }

  push(bytes: Buffer): void {
    let at = 0;
    if (this.#place === 'head') at = this.#readHead(bytes);
    while (at < bytes.length && !this.facts.isAtEnd) at = this.#readBody(bytes, at);
    if (at < bytes.length) this.facts.fault = 'bytes after the end';
  }

  /** The connection was closed, which is the end of some answers. */
  closed(): void {
    if (this.#place === 'until close') this.#finish();
  }

  #readHead(bytes: Buffer): number {
    const before = this.#head.length;
    this.#head += bytes.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return bytes.length;
    const head = this.#head.slice(0, end + 2).toLowerCase();
    this.facts.status = Number(head.slice(9, 12));
    this.facts.closes = head.includes('\r\nconnection: close\r\n');
    const [, length] = /\r\ncontent-length: *(\d+)/.exec(head) ?? [];
    this.#left = Number(length ?? 0);
    if (head.includes('\r\ntransfer-encoding: chunked\r\n')) this.#place = 'size';
    else this.#place = length === undefined ? 'until close' : 'length';
    if (this.#place === 'length' && this.#left === 0) this.#finish();
    return end + 4 - before;
  }

  #readBody(bytes: Buffer, at: number): number {
    switch (this.#place) {
      case 'size':
        return this.#readSize(bytes, at);
      case 'data':
      case 'length':
      case 'until close':
        return this.#readPayload(bytes, at);
      case 'data end':
      case 'trailer':
        return this.#readLineEnd(bytes, at);
      case 'head':
        return bytes.length;
    }
  }

  #readSize(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(lineFeed, at);
    this.#sizeLine += bytes.toString('latin1', at, end < 0 ? bytes.length : end);
    if (end < 0) return bytes.length;
    if (!sizePattern.test(this.#sizeLine)) return this.#break('no size of a chunk', bytes);
    this.#left = Number.parseInt(this.#sizeLine, 16);
    this.#sizeLine = '';
    this.#place = this.#left === 0 ? 'trailer' : 'data';
    return end + 1;
  }

  /** Reads the end of the line after a chunk, or after all of them: exactly that, as no subject sends trailers. */
  #readLineEnd(bytes: Buffer, at: number): number {
    if (bytes[at] !== lineEnd[this.#lineEndBytes]) return this.#break('no line end after a chunk', bytes);
    this.#lineEndBytes = (this.#lineEndBytes + 1) % lineEnd.length;
    if (this.#lineEndBytes > 0) return at + 1;
    if (this.#place === 'trailer') this.#finish();
    else this.#place = 'size';
    return at + 1;
  }

  #readPayload(bytes: Buffer, at: number): number {
    const isBounded = this.#place !== 'until close';
    const end = isBounded ? Math.min(bytes.length, at + this.#left) : bytes.length;
    this.#count(bytes, at, end);
    if (this.#stamps !== null) this.facts.stamps += this.#stamps.push(bytes.toString('latin1', at, end));
    const from = this.facts.hasText ? Math.max(at, end - maxTailBytes) : at;
    this.#tail += bytes.toString('latin1', from, end);
    if (!this.facts.hasText && textPattern.test(this.#tail)) {
      this.facts.hasText = true;
      this.facts.times = readTimes(this.#tail);
    }
    if (this.facts.hasText && this.#tail.length > 2 * maxTailBytes)
      this.#tail = this.#tail.slice(-maxTailBytes);
    this.#left -= end - at;
    if (isBounded && this.#left === 0) {
      if (this.#place === 'length') this.#finish();
      else this.#place = 'data end';
    }
    return end;
  }

  #finish(): void {
    this.facts.isAtEnd = true;
    const isStream = this.facts.events > 0;
    const lastEvent =
      this.#tail
        .trimEnd()
        .split(/\r?\n\r?\n/)
        .at(-1) ?? '';
    this.facts.isComplete = isStream ? lastEventPattern.test(lastEvent) : wholeEndPattern.test(this.#tail);
  }

  /** Ends an answer whose framing is broken: where the next one begins can't be said. Takes all of the bytes. */
  #break(fault: string, bytes: Buffer): number {
    this.facts.fault = fault;
    this.facts.isAtEnd = true;
    return bytes.length;
  }

  /** Counts the lines that begin with `data:` in a part of the payload. */
  #count(bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (this.#matched > 0 && at < end) {
      if (bytes[at] !== eventStart[this.#matched]) {
        this.#matched = 0;
        break;
      }
      at++;
      if (++this.#matched < eventStart.length) continue;
      this.facts.events++;
      this.#matched = 0;
    }
    if (this.#matched > 0) return;
    const part = bytes.subarray(0, end);
    for (let found = part.indexOf(eventStart, at); found >= 0; found = part.indexOf(eventStart, at)) {
      this.facts.events++;
      at = found + eventStart.length;
    }
    const lastLine = Math.max(part.lastIndexOf(lineFeed), end - eventStart.length);
    if (lastLine >= at && bytes[lastLine] === lineFeed)
      if (eventStart.subarray(0, end - lastLine).equals(part.subarray(lastLine)))
        this.#matched = end - lastLine;
  }
}

function emptyFacts(): AnswerFacts {
  return {
    status: 0,
    events: 0,
    hasText: false,
    times: null,
    stamps: 0,
    fault: null,
    isComplete: false,
    isAtEnd: false,
    closes: false,
  };
}
