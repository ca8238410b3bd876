/** Why a listener refused or closed a connection that it could have served: a closed list, which metrics label by. */
export const connectionRefusals = [
  /** The listener was full, and none of its connections could make room. */
  'listener_full',
  /** An idle connection made room for a new one. */
  'evicted',
  /** Too many connections without a known key from one address. */
  'address_limit',
  /** Too many answers were pending on one connection. */
  'pipelined',
] as const;

export type ConnectionRefusal = (typeof connectionRefusals)[number];
