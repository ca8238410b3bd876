/** How many connections a listener accepts. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  /** How many of them one address may have without a valid key, unless one was presented from it lately. */
  readonly maxAnonymousPerAddress: number;
}

/** How long the clients of a listener may take, in milliseconds. */
export interface ConnectionDeadlines {
  /** For the head of a request to arrive. */
  readonly head: number;
  /** For a whole request to arrive, while it is read. */
  readonly request: number;
  /** To read what was written of an answer. */
  readonly unread: number;
  /** Between two requests on a connection with a valid key. */
  readonly idle: number;
}

/** Why a listener refused or closed a connection: a closed list, used as a metric label. */
export const connectionRefusals = [
  /** The listener was full, and none of its connections could make room. */
  'listener_full',
  /** An idle connection made room for a new one. */
  'evicted',
  /** Too many connections without a known key from one address. */
  'address_limit',
  /** Too many answers were pending on one connection. */
  'pipelined',
  /** The handshake of TLS was not done in time. */
  'handshake_timeout',
  /** The handshake of TLS failed: as of a client that speaks plain HTTP, or an old version of TLS. */
  'handshake_failed',
] as const;

export type ConnectionRefusal = (typeof connectionRefusals)[number];

/** Why a listener refused a request before any route: a closed list, used as a metric label. */
export const edgeRefusals = [
  /** It is not HTTP, or its head breaks the grammar. */
  'syntax',
  /** Another version than HTTP/1.1 and HTTP/1.0. */
  'version',
  'host',
  'target',
  /** `TRACE` or `CONNECT`. */
  'method',
  /** The length of its body is wrong, or could be read in two ways. */
  'framing',
  /** A header that may be sent once was sent more often. */
  'duplicate_header',
  'expectation',
  'upgrade',
  /** A head of too many bytes or fields. */
  'too_large',
  /** It did not arrive in time. */
  'too_slow',
  /** The client closed its side in the middle of it. */
  'incomplete',
] as const;

export type EdgeRefusal = (typeof edgeRefusals)[number];
