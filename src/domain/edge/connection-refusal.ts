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
