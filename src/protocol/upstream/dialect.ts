import type { TextEvent, TextRequest } from '../text.ts';
import type { Answer } from './answer.ts';

/** Reads one upstream answer into events that obey the order law; `end()` always brings the ending. */
export interface UpstreamReader {
  /** Takes the next bytes of the body. Once an ending has been returned, further bytes are ignored. */
  push(bytes: Uint8Array): TextEvent[];
  /** Takes the end of the body; returns nothing when the ending has been returned already. */
  end(): TextEvent[];
  /** What is known of the answer so far: its usage, for endings that the body does not bring, and what was wrong with it. */
  readonly answer: Pick<Answer, 'usage' | 'violations'>;
}

/** What a dialect sends: the path below the upstream's base URL, and the JSON body. */
export interface DialectRequest {
  readonly path: string;
  readonly body: string;
}

/** How the requests of one upstream differ from those of most that speak its dialect. */
export interface Variation {
  /** What it calls the role of instructions. */
  readonly systemRole: 'system' | 'developer';
  /** What it calls the output cap. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
}

/** A JSON object that an upstream sent. */
export type Frame = Readonly<Record<string, unknown>>;

/** What a dialect knows of one answer: it reads frames, and tells `answer` what they say. */
export interface FrameReader {
  /** One event of a stream. `name` is its SSE event name, empty when it had none. */
  readEvent(frame: Frame, name: string, answer: Answer): void;
  /** A whole answer in one object. */
  readBody(body: Frame, answer: Answer): void;
}

/** One protocol that we speak to providers. */
export interface Dialect {
  writeRequest(request: TextRequest, upstreamModel: string, variation: Variation): DialectRequest;
  createFrameReader(): FrameReader;
}
