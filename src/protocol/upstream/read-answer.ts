import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import type { AnswerPart, FinishReasonRule } from '../text.ts';
import { Answer } from './answer.ts';
import type { Dialect, Frame, UpstreamReader } from './dialect.ts';
import { invalidAnswer } from './failures.ts';
import { StreamReader } from './stream/stream-reader.ts';
import type { Sanitise } from './words/sanitise.ts';

/** The largest whole answer that is read, in bytes. */
const maxBodyBytes = 16 * 1_048_576;

/** Space, tab, line feed and carriage return: some providers send them while a request is queued. */
const blanks = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** The first bytes of a JSON object and of a JSON list. */
const openings = new Set([0x7b, 0x5b]);

/** The part for a read that completed nothing. */
const nothing: AnswerPart = { deltas: [], ending: null };

/** Facts about an answer that are known before its body. */
export interface AnswerTerms {
  /** The `content-type` header in lower case, empty when there was none. */
  readonly contentType: string;
  /** Whether a stream was requested. The answer is read by its content type all the same. */
  readonly streamAsked: boolean;
  readonly finishReason: FinishReasonRule;
  /** The tag in which the text begins with thoughts; `null` for none. */
  readonly thoughtTag: string | null;
  /** The most tokens that the text of the request can have. */
  readonly sentTokens: number;
  /** Makes what the upstream reports of an error fit to be shown. */
  readonly sanitise: Sanitise;
  /** Whether a stream's text may be taken out of its frames without parsing each of them. */
  readonly isFast: boolean;
}

/**
 * Creates the reader for an answer's content type: an event stream, or a whole JSON body. Some upstreams send the other
 * kind than was requested, and some send no content type.
 */
export function createReader(dialect: Dialect, terms: AnswerTerms): UpstreamReader {
  const { contentType, streamAsked, finishReason, thoughtTag, sentTokens, sanitise, isFast } = terms;
  const createAnswer = (): Answer => new Answer(finishReason, sentTokens, sanitise, thoughtTag);
  const answer = createAnswer();
  const createStreamReader: CreateReader = () =>
    new StreamReader(dialect, answer, isFast ? createAnswer : null);
  const createBody: CreateReader = () => createBodyReader(dialect, answer);
  const isStream = contentType.startsWith('text/event-stream');
  const isBody = /^application\/([\w.-]+\+)?json\b/.test(contentType);
  if (!(streamAsked ? isStream : isBody)) answer.violations.add('wrong_content_type');
  if (isStream) return createStreamReader();
  if (isBody) return createBody();
  if (contentType === '') return createGuessingReader(answer, createStreamReader, createBody);
  answer.fail(invalidAnswer('neither JSON nor an event stream'));
  return createBody();
}

type CreateReader = () => UpstreamReader;

/** Reads an answer without a content type: JSON begins with a brace or a bracket, and no event stream does. */
function createGuessingReader(
  answer: Answer,
  createStreamReader: CreateReader,
  createBody: CreateReader,
): UpstreamReader {
  let reader: UpstreamReader | null = null;
  return {
    answer,
    get isWhole() {
      return reader?.isWhole ?? true;
    },
    push(bytes) {
      const first = bytes.find((byte) => !blanks.has(byte));
      if (reader === null && first === undefined) return nothing;
      const create = first !== undefined && openings.has(first) ? createBody : createStreamReader;
      return (reader ??= create()).push(bytes);
    },
    end: () => (reader ?? createBody()).end(),
  };
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
      if (answer.ending !== null) return answer.take();
      text.add(bytes);
      if (text.bytes <= maxBodyBytes) return nothing;
      text.drop();
      answer.violations.add('oversized_event');
      answer.fail(invalidAnswer('an answer of over 16 MiB'));
      return answer.take();
    },
    end() {
      if (answer.ending !== null) return answer.take();
      const body = parseJson(text.end());
      if (isPlainObject(body)) frames.readBody(body, answer);
      else if (isFrameList(body) && frames.readList !== undefined) frames.readList(body, answer);
      else {
        answer.violations.add('bad_json');
        answer.fail(invalidAnswer('a body that is not a JSON object'));
      }
      answer.conclude(true);
      return answer.take();
    },
  };
}

function isFrameList(body: unknown): body is readonly Frame[] {
  return Array.isArray(body) && body.length > 0 && body.every(isPlainObject);
}
