import type { Connection } from './connection.ts';

/** A request that has not arrived within Node's time limit. */
export interface LateRequest {
  /** How long the client may take for the rest of the request once it is read again, in milliseconds. */
  readonly restMs: number;
  readonly refuse: () => void;
}

/** How long connections may stay idle after an answer, in milliseconds and as the header that announces it. */
interface KeepAlive {
  readonly idleMs: number;
  readonly header: string;
}

/** The side of the connection table that a connection calls. */
export interface ConnectionEvents {
  /** The connection became busy, idle, known or closed. */
  readonly changed: (connection: Connection) => void;
  /** The connection was closed for too many pending answers. */
  readonly overrun: (connection: Connection) => void;
  /** Whether a valid key is in use at the connection's address, or was lately: it may be a proxy for many clients. */
  readonly isClientAddress: (connection: Connection) => boolean;
  /** How long a client's connection may stay idle. */
  readonly keepAlive: KeepAlive;
}
