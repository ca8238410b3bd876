import type { AnswerPart, UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';

/** Reads one upstream answer into parts that obey the order law; `end()` always brings the ending. */
export interface UpstreamReader {
  /** Takes the next bytes of the body. Once an ending has been returned, further bytes are ignored. */
  push(bytes: Uint8Array): AnswerPart;
  /** Takes the end of the body; returns nothing when the ending has been returned already. */
  end(): AnswerPart;
  /** Whether the answer is one body, all of which counts or none. */
  readonly isWhole: boolean;
  /** What is known of the answer so far: its usage, for endings that the body does not bring, its thoughts, and what was wrong with it. */
  readonly answer: Pick<Answer, 'knownUsage' | 'thoughts' | 'implausible' | 'violations'>;
}

/** What a dialect sends: the path below the upstream's base URL, and the JSON body. */
export interface DialectRequest {
  readonly path: string;
  readonly body: string;
}

/** How the requests of one upstream differ from those of most that speak its dialect. */
export interface DialectQuirks {
  /** What it calls the role of instructions. */
  readonly systemRole: 'system' | 'developer';
  /** What it calls the output cap. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  /** Whether a stream has its usage because it is asked for, or unasked by an upstream that refuses the question. */
  readonly streamUsage: 'ask' | 'given';
}

/** A JSON object that an upstream sent. */
export type Frame = Readonly<Record<string, unknown>>;

/** What a dialect knows of one answer: it reads frames, and tells `answer` what they say. */
export interface FrameReader {
  /** One event of a stream. `name` is its SSE event name, empty when it had none. */
  readEvent(frame: Frame, name: string, answer: Answer): void;
  /** A whole answer in one object. */
  readBody(body: Frame, answer: Answer): void;
  /** A whole answer as the list of what would have been a stream's events, where a protocol has such answers. */
  readList?(frames: readonly Frame[], answer: Answer): void;
}

/** Where the upstream's key stands: in the header of this name (lower case), behind this prefix. */
export interface AuthScheme {
  readonly header: string;
  readonly prefix: string;
}

/** Where most protocols have the key. */
export const bearer: AuthScheme = { header: 'authorization', prefix: 'Bearer ' };

/** One protocol that we speak to providers. */
export interface Dialect {
  readonly auth: AuthScheme;
  /** What each request has to have in its head beside the key, by names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether a stream says by itself that it is over; one that doesn't is over when its body is. */
  readonly marksEnd: boolean;
  /** The smallest output cap that it takes, in tokens; a smaller one is raised to it. */
  readonly leastOutputTokens: number;
  /** Where its models are listed, below the base URL; as many of them on one page as there may be. */
  readonly modelsPath: string;
  writeRequest(request: UpstreamRequest, upstreamModel: string, quirks: DialectQuirks): DialectRequest;
  createFrameReader(): FrameReader;
}
