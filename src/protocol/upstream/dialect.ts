import type { AnswerPart, UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';

/** Reads one upstream answer into parts that obey the order law; `end()` always ends it. */
export interface UpstreamReader {
  /** Takes the next bytes of the body. After the ending, further bytes are ignored. */
  push(bytes: Uint8Array): AnswerPart;
  /** Takes the end of the body; returns an empty part if the ending has been returned already. */
  end(): AnswerPart;
  /** Whether the answer is one JSON body, which is used as a whole or not at all. */
  readonly isWhole: boolean;
  /** The state of the answer so far: its usage (for endings outside the body), its thoughts and its faults. */
  readonly answer: Pick<Answer, 'knownUsage' | 'thoughts' | 'implausible' | 'named' | 'violations'>;
}

/** A request in a dialect: the path below the upstream's base URL, and the JSON body. */
export interface DialectRequest {
  readonly path: string;
  readonly body: string;
}

/** Differences of one upstream's requests from its dialect's usual form. */
export interface DialectQuirks {
  /** The upstream's name for the role of instructions. */
  readonly systemRole: 'system' | 'developer';
  /** The upstream's name for the output cap. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  /** `ask`: usage is requested on streams; `given`: the upstream sends it unasked and refuses the option. */
  readonly streamUsage: 'ask' | 'given';
}

/** A JSON object that an upstream sent. */
export type Frame = Readonly<Record<string, unknown>>;

/** The reader of one answer in a dialect: it reads frames and reports their contents to `answer`. */
export interface FrameReader {
  /** Reads one event of a stream. `name` is its SSE event name, empty when it had none. */
  readEvent(frame: Frame, name: string, answer: Answer): void;
  /** Takes the text of an event that says nothing but this text, as `readEvent` would take it. */
  takeText(text: string, answer: Answer): void;
  /** Reads a whole answer in one object. */
  readBody(body: Frame, answer: Answer): void;
  /** Reads a whole answer that is a list of stream events, if the protocol has such answers. */
  readList?(frames: readonly Frame[], answer: Answer): void;
}

/** The header that carries the upstream's key: its name in lower case, and the prefix of its value. */
export interface AuthScheme {
  readonly header: string;
  readonly prefix: string;
}

/** The scheme of most protocols. */
export const bearer: AuthScheme = { header: 'authorization', prefix: 'Bearer ' };

/** One upstream protocol. */
export interface Dialect {
  readonly auth: AuthScheme;
  /** Further headers of each request, by names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether a stream has an explicit end marker; otherwise it ends with its body. */
  readonly marksEnd: boolean;
  /** The smallest output cap that the protocol accepts, in tokens; a smaller one is raised to it. */
  readonly leastOutputTokens: number;
  /** The path of the model list below the base URL, with the largest page size. */
  readonly modelsPath: string;
  /** Whether its requests can have these stop sequences, of which there is at least one. */
  takesStop(stop: readonly string[]): boolean;
  writeRequest(request: UpstreamRequest, upstreamModel: string, quirks: DialectQuirks): DialectRequest;
  createFrameReader(): FrameReader;
}
