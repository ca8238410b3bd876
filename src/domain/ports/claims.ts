/** A request that a client has named with an `Idempotency-Key`: one question, which is asked, run and charged once. */
export interface Claim {
  readonly keyId: string;
  /** SHA-256 of the name that the client gave it, as 64 hexadecimal digits. */
  readonly name: string;
  /** SHA-256 of all that it asks, likewise: another request under the same name is refused. */
  readonly request: string;
}

/** What a claim is found by. */
export type ClaimName = Pick<Claim, 'keyId' | 'name'>;

/** A claim as it is stored. */
export interface StoredClaim extends Pick<Claim, 'request'> {
  /** The request that runs it, or has run it. */
  readonly requestId: string;
  /** The process that runs it, or has run it: `null` where that is not known, as it ended under an earlier version. */
  readonly owner: string | null;
  /** Whether this process runs it, another one does, or it has ended with a charge. One whose owner has no lease is free. */
  readonly state: 'own' | 'running' | 'ended' | 'free';
}

/**
 * The claims of API keys. A claim is running under the lease of its owner, or has ended; a free one has no row. It is on the
 * disk before its upstream is called, and ends with the settlement of its request: see `ClaimEnd`.
 */
export interface Claims {
  /** Resolves with what is stored of a claim; `null` where nothing is. */
  findClaim(claim: ClaimName): Promise<StoredClaim | null>;
  /**
   * Has a request run a claim, where it is free, or was given to this request before. Resolves with whether it does. Rejects when
   * the database does not take it: whether it has is not known then, and `freeClaim` has to follow.
   */
  beginClaim(claim: Claim, requestId: string): Promise<boolean>;
  /** Frees a claim, if a request of this process runs it. */
  freeClaim(claim: ClaimName, requestId: string): Promise<void>;
  /** Removes claims that ended before a time, in milliseconds since 1970; resolves with how many. */
  removeClaims(beforeMs: number): Promise<number>;
}

/** What the settlement of a request does with its claim. A request whose claim was freed meanwhile is not settled. */
export interface ClaimEnd extends Pick<Claim, 'name'> {
  /** Whether the claim is free again, because its request cost nothing and has no answer; otherwise it has ended. */
  readonly isFreed: boolean;
}

/** A settlement found that the claim of its request was freed, as when its process was taken for dead: nothing is charged. */
export class ClaimLostError extends Error {
  override readonly name = 'ClaimLostError';

  constructor(requestId: string) {
    super(`the claim of ${requestId} was freed, as its process was taken for dead: it costs nothing`);
  }
}
