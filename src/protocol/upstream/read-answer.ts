import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import type { AnswerPart } from '../text.ts';
import { Answer } from './answer.ts';
import type { AnswerRules } from './answer.ts';
import type { Dialect, Frame, UpstreamReader } from './dialect.ts';
import { failure, invalidAnswer } from './failures.ts';
import { StreamReader } from './stream/stream-reader.ts';

/** The largest whole answer that is read, in bytes. */
const maxBodyBytes = 16 * 1_048_576;

/** Blanks, which some providers send while a request is queued, and the bytes of a byte order mark. */
const blanks = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);

/** The first bytes of a JSON object and of a JSON list. */
const openings = new Set([0x7b, 0x5b]);

/** How an event stream begins: with a field or a comment. */
const streamStart = /^(?:data|event|error|id|retry)?:/;

/** The length of the longest of these beginnings, in bytes. */
const startBytes = 'event:'.length;

/** The part for a read that completed nothing. */
const nothing: AnswerPart = { deltas: [], ending: null };

/** Facts about an answer that are known before its body. */
export interface AnswerTerms extends AnswerRules {
  /** The `content-type` header in lower case, empty when there was none. */
  readonly contentType: string;
  /** Whether a stream was requested. The answer is read by its content type all the same. */
  readonly streamAsked: boolean;
  /** Whether a stream's text may be taken out of its frames without parsing each of them. */
  readonly isFast: boolean;
}

/**
 * Creates the reader for an answer: an event stream, or a whole JSON body. Some upstreams send the other kind than was
 * requested, without a content type or with a wrong one, so the first bytes decide.
 */
export function createReader(dialect: Dialect, terms: AnswerTerms): UpstreamReader {
  const { contentType, streamAsked, isFast } = terms;
  const answer = new Answer(terms);
  const isStream = contentType.startsWith('text/event-stream');
  const isBody = /^application\/([\w.-]+\+)?json\b/.test(contentType);
  if (!(streamAsked ? isStream : isBody)) answer.violations.add('wrong_content_type');
  const declared = isStream ? 'stream' : isBody ? 'body' : contentType === '' ? 'nothing' : 'other';
  return new ReaderByStart(answer, declared, {
    stream: () => new StreamReader(dialect, answer, isFast ? () => new Answer(terms) : null),
    body: () => createBodyReader(dialect, answer),
  });
}

type Form = 'stream' | 'body';

/** Reads an answer in the form that its first bytes show. */
class ReaderByStart implements UpstreamReader {
  readonly answer: Answer;
  readonly #declared: Form | 'nothing' | 'other';
  readonly #readers: Readonly<Record<Form, () => UpstreamReader>>;
  #reader: UpstreamReader | null = null;
  /** What has come while its form is open: less than `startBytes` beside blanks. */
  #start = Buffer.alloc(0);
  /** How many bytes of blanks came before the answer. */
  #blanks = 0;

  constructor(
    answer: Answer,
    declared: Form | 'nothing' | 'other',
    readers: Readonly<Record<Form, () => UpstreamReader>>,
  ) {
    this.answer = answer;
    this.#declared = declared;
    this.#readers = readers;
  }

  get isWhole(): boolean {
    return this.#reader?.isWhole ?? this.#declared !== 'stream';
  }

  push(bytes: Uint8Array): AnswerPart {
    if (this.#reader !== null) return this.#reader.push(bytes);
    const first = bytes.findIndex((byte) => !blanks.has(byte));
    if (this.#start.length === 0 && first === -1) return this.#takeBlanks(bytes.length);
    const start = this.#start.length === 0 ? bytes.subarray(first) : Buffer.concat([this.#start, bytes]);
    const form = this.#formOf(start, start.length < startBytes);
    if (form !== null) return (this.#reader = this.#readers[form]()).push(start);
    this.#start = Buffer.from(start);
    return nothing;
  }

  end(): AnswerPart {
    if (this.#reader === null) {
      const form = this.#start.length === 0 ? this.#formOfNothing() : this.#formOf(this.#start, false);
      this.#reader = this.#readers[form ?? 'body']();
      if (this.answer.ending === null) this.#reader.push(this.#start);
    }
    return this.#reader.end();
  }

  #takeBlanks(count: number): AnswerPart {
    this.#blanks += count;
    if (this.#blanks > maxBodyBytes) this.answer.fail(invalidAnswer('an answer of over 16 MiB'));
    return this.answer.take();
  }

  /** `null` while the first bytes do not tell; what can't be read at all ends the answer. */
  #formOf(start: Uint8Array, isShort: boolean): Form | null {
    const declared = this.#declared;
    const isJson = openings.has(start[0] ?? 0);
    if (declared === 'stream' || declared === 'nothing') return isJson ? 'body' : 'stream';
    if (isJson) return 'body';
    if (isShort) return null;
    const isStream = streamStart.test(Buffer.from(start.subarray(0, startBytes)).toString('latin1'));
    if (!isStream && declared === 'other')
      this.answer.fail(invalidAnswer('neither JSON nor an event stream'));
    return isStream ? 'stream' : 'body';
  }

  #formOfNothing(): Form {
    return this.#declared === 'stream' ? 'stream' : 'body';
  }
}

/** The text of a whole body. One that comes in one piece, as most do, is decoded at once, and needs no decoder of its own. */
class BodyText {
  /** How many bytes have come. */
  bytes = 0;
  #first: Uint8Array | null = null;
  #decoder: TextDecoder | null = null;
  #text = '';

  add(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    if (this.bytes === bytes.length) {
      this.#first = bytes;
      return;
    }
    this.#decoder ??= new TextDecoder();
    if (this.#first !== null) this.#text = this.#decoder.decode(this.#first, { stream: true });
    this.#first = null;
    this.#text += this.#decoder.decode(bytes, { stream: true });
  }

  drop(): void {
    this.#first = null;
    this.#text = '';
  }

  /** All of it: nothing may be added after this. */
  end(): string {
    if (this.#first !== null) return wholeDecoder.decode(this.#first);
    return this.#text + (this.#decoder?.decode() ?? '');
  }
}

/** Keeps nothing between two calls. */
const wholeDecoder = new TextDecoder();

function createBodyReader(dialect: Dialect, answer: Answer): UpstreamReader {
  const frames = dialect.createFrameReader();
  const text = new BodyText();
  return {
    answer,
    isWhole: true,
    push(bytes) {
      if (answer.ending !== null || bytes.length === 0) return answer.take();
      text.add(bytes);
      if (text.bytes <= maxBodyBytes) return nothing;
      text.drop();
      answer.violations.add('oversized_event');
      answer.fail(invalidAnswer('an answer of over 16 MiB'));
      return answer.take();
    },
    end() {
      if (answer.ending !== null) return answer.take();
      const whole = text.end();
      const body = parseJson(whole);
      if (isPlainObject(body)) frames.readBody(body, answer);
      else if (isFrameList(body) && frames.readList !== undefined) frames.readList(body, answer);
      else if (isCutJson(whole))
        answer.fail(failure('truncated', { detail: 'the answer ends before its JSON does' }));
      else {
        answer.violations.add('bad_json');
        answer.fail(invalidAnswer('a body that is not a JSON object'));
      }
      answer.conclude('given');
      return answer.take();
    },
  };
}

function isFrameList(body: unknown): body is readonly Frame[] {
  return Array.isArray(body) && body.length > 0 && body.every(isPlainObject);
}

/** Where the engine found a fault, if it says so. */
const place = / at position (\d+)/;

/** Whether a text is an object or a list in JSON up to its end, and would only have to go on. */
function isCutJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    const { message } = error as SyntaxError;
    return message.startsWith('Unexpected end') || place.exec(message)?.[1] === String(text.length);
  }
}
