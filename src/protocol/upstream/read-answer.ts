import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import { createSseParser } from '../sse.ts';
import type { SseEvent } from '../sse.ts';
import type { FinishReasonRule, ProtocolViolation, TextEvent, Usage } from '../text.ts';
import { Answer } from './answer.ts';
import type { Dialect, FrameReader, UpstreamReader } from './dialect.ts';
import { invalidAnswer } from './failures.ts';
import { readReportedError } from './read-error.ts';

/** The largest whole answer that is read, in bytes. */
const maxBodyBytes = 16 * 1_048_576;

/** Space, tab, line feed and carriage return: what some providers send while a request waits its turn. */
const blanks = new Set([0x20, 0x09, 0x0a, 0x0d]);
const openingBrace = 0x7b;

/** What a reader has to know of an answer before its body comes. */
export interface AnswerTerms {
  /** The `content-type` header in lower case, empty when there was none. */
  readonly contentType: string;
  /** Whether a stream was asked for. Whatever comes is read as what it is. */
  readonly streamAsked: boolean;
  readonly finishReason: FinishReasonRule;
}

/**
 * Reads an answer by what it says it is: an event stream, or a whole JSON body that is given out as the same events.
 * Some upstreams send the one when the other was asked for, and some don't say.
 */
export function createReader(dialect: Dialect, terms: AnswerTerms): UpstreamReader {
  const { contentType, streamAsked, finishReason } = terms;
  const answer = new Answer(finishReason);
  const frames = dialect.createFrameReader();
  const isStream = contentType.startsWith('text/event-stream');
  const isBody = /^application\/([\w.-]+\+)?json\b/.test(contentType);
  if (!(streamAsked ? isStream : isBody)) answer.violations.add('wrong_content_type');
  if (isStream) return new StreamReader(frames, answer);
  if (isBody) return new BodyReader(frames, answer);
  if (contentType === '') return new GuessingReader(frames, answer);
  answer.fail(invalidAnswer('neither JSON nor an event stream'));
  return new BodyReader(frames, answer);
}

/** Reads an answer that does not say what it is: JSON begins with a brace, and no event stream does. */
class GuessingReader implements UpstreamReader {
  readonly violations: ReadonlySet<ProtocolViolation>;
  readonly #frames: FrameReader;
  readonly #answer: Answer;
  #reader: UpstreamReader | null = null;

  constructor(frames: FrameReader, answer: Answer) {
    this.#frames = frames;
    this.#answer = answer;
    this.violations = answer.violations;
  }

  get usage(): Usage | null {
    return this.#answer.usage;
  }

  push(bytes: Uint8Array): TextEvent[] {
    const first = bytes.find((byte) => !blanks.has(byte));
    if (this.#reader === null && first === undefined) return [];
    return (this.#reader ??= this.#choose(first)).push(bytes);
  }

  end(): TextEvent[] {
    return (this.#reader ??= this.#choose(undefined)).end();
  }

  #choose(first: number | undefined): UpstreamReader {
    const Reader = first === undefined || first === openingBrace ? BodyReader : StreamReader;
    return new Reader(this.#frames, this.#answer);
  }
}

class StreamReader implements UpstreamReader {
  readonly #decoder = new TextDecoder();
  readonly #parser = createSseParser();
  readonly #frames: FrameReader;
  readonly #answer: Answer;

  constructor(frames: FrameReader, answer: Answer) {
    this.#frames = frames;
    this.#answer = answer;
  }

  get usage(): Usage | null {
    return this.#answer.usage;
  }

  get violations(): ReadonlySet<ProtocolViolation> {
    return this.#answer.violations;
  }

  push(bytes: Uint8Array): TextEvent[] {
    if (this.#answer.ending === null)
      this.#readAll(this.#parser.push(this.#decoder.decode(bytes, { stream: true })));
    return this.#answer.take();
  }

  end(): TextEvent[] {
    const answer = this.#answer;
    if (answer.ending === null)
      this.#readAll([...this.#parser.push(this.#decoder.decode()), ...this.#parser.end()]);
    if (answer.ending === null && answer.hasReason) answer.violations.add('missing_done');
    answer.conclude(false);
    return answer.take();
  }

  #readAll(events: readonly SseEvent[]): void {
    for (const event of events) this.#read(event);
    if (!this.#parser.overflowed) return;
    this.#answer.violations.add('oversized_event');
    this.#answer.fail(invalidAnswer('an event of over 1 MiB'));
  }

  #read({ name, data }: SseEvent): void {
    const answer = this.#answer;
    if (data === '') return;
    if (data.startsWith('[DONE]')) return answer.conclude(true);
    if (answer.ending !== null) return this.#notice(answer.ending);
    const frame = parseJson(data);
    if (isPlainObject(frame)) return this.#frames.readEvent(frame, name, answer);
    if (name === 'error') return answer.fail(readReportedError(null));
    answer.violations.add('bad_json');
    answer.fail(invalidAnswer('an event that is not a JSON object'));
  }

  /** What comes after a whole answer is dropped: to the client it would be text after the end. */
  #notice(ending: 'finish' | 'failure'): void {
    if (ending === 'finish') this.#answer.violations.add('duplicate_terminal');
  }
}

class BodyReader implements UpstreamReader {
  readonly #decoder = new TextDecoder();
  readonly #frames: FrameReader;
  readonly #answer: Answer;
  #body = '';
  #bytes = 0;

  constructor(frames: FrameReader, answer: Answer) {
    this.#frames = frames;
    this.#answer = answer;
  }

  get usage(): Usage | null {
    return this.#answer.usage;
  }

  get violations(): ReadonlySet<ProtocolViolation> {
    return this.#answer.violations;
  }

  push(bytes: Uint8Array): TextEvent[] {
    if (this.#answer.ending !== null) return this.#answer.take();
    this.#bytes += bytes.length;
    this.#body += this.#decoder.decode(bytes, { stream: true });
    if (this.#bytes > maxBodyBytes) {
      this.#body = '';
      this.#answer.violations.add('oversized_event');
      this.#answer.fail(invalidAnswer('an answer of over 16 MiB'));
    }
    return this.#answer.take();
  }

  end(): TextEvent[] {
    const answer = this.#answer;
    if (answer.ending !== null) return answer.take();
    const body = parseJson(this.#body + this.#decoder.decode());
    if (isPlainObject(body)) this.#frames.readBody(body, answer);
    else {
      answer.violations.add('bad_json');
      answer.fail(invalidAnswer('a body that is not a JSON object'));
    }
    answer.conclude(true);
    return answer.take();
  }
}
