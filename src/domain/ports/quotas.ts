/** The limits of an upstream that the processes on one database divide among them. */
export type UpstreamLimit = 'maxInFlight' | 'requestsPerMinute' | 'tokensPerMinute';

/** What this process does with one limit of an upstream, in requests or tokens. */
export interface LimitUse {
  readonly upstream: string;
  readonly limit: UpstreamLimit;
  /** The limit by the config in force. */
  readonly most: number;
  /**
   * What it uses: requests in progress, or the starts and tokens that still count at the upstream, with those that are
   * expected of requests in progress.
   */
  readonly used: number;
  /** What the requests that wait need beside that. */
  readonly waiting: number;
}

/** The limiters of a process, as their quotas are renewed. */
export interface QuotaLimiters {
  /** All configured limits, those that are not used, too. */
  uses(): readonly LimitUse[];
  /** Some quotas have grown: requests that wait may be started. */
  serve(): void;
}

/** The quotas that this process has of the limits of upstreams. */
export interface LimitQuotas {
  /** How much of a limit this process may use now, in requests or tokens: nothing may be started that makes it more. */
  of(upstream: string, limit: UpstreamLimit): number;
  /**
   * Something joined a queue, or a permit was released: the quotas are renewed soon if that may change them. May be called as
   * often as one likes.
   */
  refresh(): void;
}

/** What a process asks for one limit. */
export interface QuotaDemand {
  readonly upstream: string;
  readonly limit: UpstreamLimit;
  /** The limit by its config. */
  readonly most: number;
  /** What it has from now on, whatever it had before: it uses no more until it is granted more. */
  readonly keeps: number;
  /** What it uses, and what waits; at most `most`. */
  readonly needs: number;
  /** What it would have if nothing else were needed: its needs, and what it expects of the next seconds; at most `most`. */
  readonly wants: number;
}

/** The answer to a demand. */
export interface GrantedQuota {
  readonly upstream: string;
  readonly limit: UpstreamLimit;
  /** What the process has now: at least what it kept. */
  readonly quota: number;
  /** Its fair part of the limit: where its quota is more, it gives the rest back as soon as that is not used. */
  readonly target: number;
}

/**
 * The quotas of all processes, where each sees the same. The sum of the quotas of a limit never exceeds it, nor the smallest
 * of the limits by which the processes go. A quota lasts as long as the lease of its process.
 */
export interface QuotaStore {
  /** The id under which this process has its lease now: another one once its lease was ended, with all its quotas. */
  owner(): string;
  /**
   * Sets the quotas of this process to what it keeps, and grants it more where that is free and fair. Calls are numbered: one
   * that comes behind a later one changes nothing and is answered with nothing, as is that of a process without a lease.
   * Rejects with a `StorageError` when the database fails: it may have been done then.
   */
  renew(turn: number, demands: readonly QuotaDemand[]): Promise<readonly GrantedQuota[]>;
}
