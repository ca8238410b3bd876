/** The processes that share the ports of one gateway, as one of them sees them. */
export interface Workers {
  /** The number of this one; no other process of the gateway gets it, not even one that replaces it. */
  readonly own: number;
  /** How many there are: limits that hold for the machine are divided among them. */
  readonly count: number;
  /** What they present to each other when they ask for what another one has in memory. */
  readonly peerToken: string;
  /** The exposition of the metrics of all of them; `null` when it could not be asked for. */
  exposeMetrics(): Promise<string | null>;
  /** What each of them alone knows of the status, as a list in JSON; `null` when it could not be asked for. */
  readStatuses(): Promise<string | null>;
  /** What each of them alone knows of upstreams and shadow routes; in the same form. */
  readViews(): Promise<string | null>;
  /** Whether any of them can take requests. */
  isAnyReady(): Promise<boolean>;
}
