/** How many connections a listener accepts. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  /** How many of them one address may have without a valid key, unless one was presented from it lately. */
  readonly maxAnonymousPerAddress: number;
}
