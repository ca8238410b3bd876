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
