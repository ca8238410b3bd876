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
