import type { Mode, RequestKind } from '../consumption.ts';

/** A request in progress; what is not known of it yet is `null`. */
export interface RunningRequest {
  readonly requestId: string;
  readonly protocol: RequestKind;
  readonly createdAtMs: number;
  readonly keyId: string | null;
  /** Whether it has one of its key's slots, or waits for one. */
  readonly hasSlot: boolean;
  readonly mode: Mode | null;
  /** A configured name. */
  readonly model: string | null;
}

/** The requests in progress, of one process or of all; asked for by operators and by the holders of keys. */
export interface RunningRequests {
  /** Those whose key is known, in the order of their arrival. */
  list(): Promise<readonly RunningRequest[]>;
  /** How many of each key have one of its slots, by the keys' ids; keys without any may be left out. */
  count(keyIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Stops one request; false when none runs under this id, or not with this key. */
  cancel(requestId: string, keyId?: string): Promise<boolean>;
}
