/** The longest data of one event, and the longest line, its `data: ` included, in UTF-16 code units. */
export const maxEventChars = 1_048_576;
const maxLineChars = maxEventChars + 'data: '.length;

/** A dispatched server-sent event; `name` is its `event:` field, empty when it had none. */
export interface SseEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * Parses `text/event-stream` (WHATWG HTML, section 9.2) in chunks of any size: CR, LF and CRLF line ends, a leading byte
 * order mark, comments, `data:` with or without its space, and multi-line data, split anywhere between pushes.
 */
export class SseParser {
  /** True once an event grew over `maxEventChars`; nothing is parsed from then on. */
  overflowed = false;
  #line = '';
  #name = '';
  #data: string | null = null;
  /** Whether the data is JSON that stands in the stream without a field. */
  #isBare = false;
  #started = false;
  #skipLineFeed = false;

  /** Whether nothing of an event has arrived since the last one: text from here on can be read on its own. */
  get isBetweenEvents(): boolean {
    const hasNone = this.#line === '' && this.#data === null && this.#name === '';
    return hasNone && this.#started && !this.#skipLineFeed && !this.overflowed;
  }

  /** Takes the next piece of the stream and returns the events that it completed. */
  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    if (text === '' || this.overflowed) return events;
    let start = this.#skipPrefix(text);
    let carriageReturn = text.indexOf('\r', start);
    for (;;) {
      const lineFeed = text.indexOf('\n', start);
      const end = firstOf(lineFeed, carriageReturn);
      if (end === -1) break;
      this.#takeLine(this.#line + text.slice(start, end), events);
      this.#line = '';
      if (this.overflowed) return events;
      start = end + 1;
      if (end !== carriageReturn) continue;
      if (start === text.length) this.#skipLineFeed = true;
      else if (text[start] === '\n') start++;
      carriageReturn = text.indexOf('\r', start);
    }
    this.#line += text.slice(start);
    if (this.#line.length > maxLineChars) this.#overflow();
    return events;
  }

  /** Ends the stream. An event without its final blank line still counts: some servers leave it out. */
  end(): SseEvent[] {
    const events: SseEvent[] = [];
    if (this.overflowed) return events;
    if (this.#line !== '') this.#takeLine(this.#line, events);
    this.#takeLine('', events);
    this.#line = '';
    return events;
  }

  /** Where parsing starts: after a byte order mark, or after the LF of a CRLF that was split between two pushes. */
  #skipPrefix(text: string): number {
    const skipped =
      (!this.#started && text.startsWith('\uFEFF')) || (this.#skipLineFeed && text.startsWith('\n'));
    this.#started = true;
    this.#skipLineFeed = false;
    return skipped ? 1 : 0;
  }

  #takeLine(line: string, events: SseEvent[]): void {
    if (line.length > maxLineChars) return this.#overflow();
    if (line === '') {
      if (this.#data !== null) events.push({ name: this.#name, data: this.#data });
      this.#name = '';
      this.#data = null;
      this.#isBare = false;
      return;
    }
    if (this.#isBare || (line.startsWith('{') && this.#data === null)) return this.#takeBare(line, events);
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') this.#appendData(value);
    else if (field === 'event') this.#name = value;
    else if (field === 'error') this.#takeError(value);
  }

  #appendData(value: string): void {
    this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    if (this.#data.length > maxEventChars) this.#overflow();
  }

  /** Some servers and proxies break a stream off with an error as bare JSON, in one line or in several. */
  #takeBare(line: string, events: SseEvent[]): void {
    this.#isBare = true;
    this.#appendData(line);
    if (this.#data?.startsWith(line) === true && line.endsWith('}')) this.#takeLine('', events);
  }

  /** Some llama.cpp builds report a failure in an `error:` field, which is in no specification. */
  #takeError(value: string): void {
    this.#name = 'error';
    this.#appendData(value);
  }

  /** Frees what was kept, so that an endless line can't hold memory. */
  #overflow(): void {
    this.overflowed = true;
    this.#line = '';
    this.#data = null;
  }
}

function firstOf(left: number, right: number): number {
  if (left === -1) return right;
  return right === -1 ? left : Math.min(left, right);
}

/** One frame of a stream without event names, as Chat Completions sends it. */
export function writeDataFrame(data: string): string {
  return `data: ${data}\n\n`;
}

/** One frame with its event name, as Responses sends it. */
export function writeEventFrame(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`;
}
