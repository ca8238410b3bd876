import type { TextEvent, TextRequest, Usage } from '../text.ts';

/** Reads one upstream answer into events that obey the order law; `end()` always brings the ending. */
export interface UpstreamReader {
  /** Takes the next bytes of the body. Once an ending has been returned, further bytes are ignored. */
  push(bytes: Uint8Array): TextEvent[];
  /** Takes the end of the body; returns nothing when the ending has been returned already. */
  end(): TextEvent[];
  /** The last usage that the upstream reported, for endings that the body does not bring. */
  readonly usage: Usage | null;
}

/** What a dialect sends: the path below the upstream's base URL, and the JSON body. */
export interface DialectRequest {
  readonly path: string;
  readonly body: string;
}

/** One protocol that we speak to providers. */
export interface Dialect {
  writeRequest(request: TextRequest, upstreamModel: string): DialectRequest;
  /** Reads a `text/event-stream` body. */
  createStreamReader(): UpstreamReader;
  /** Reads a whole JSON body. */
  createResultReader(): UpstreamReader;
}
