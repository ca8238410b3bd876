import type { Mode, RequestKind } from '../money/consumption.ts';
import type { PermitWait } from './upstream-limiters.ts';

/** A request in progress; fields that are not known yet are `null`. */
export interface RunningRequest {
  readonly requestId: string;
  readonly protocol: RequestKind | null;
  readonly createdAtMs: number;
  readonly keyId: string | null;
  /** The name of its key; absent where only another process knows it. */
  readonly keyName?: string | null;
  /** The id of the group of which it has a slot, too; `null` without one. */
  readonly groupId: string | null;
  /** True if the request has one of its key's slots; false if it waits for one, or has joined another request. */
  readonly hasSlot: boolean;
  /** Its wait for an upstream with limits; `null` if it does not wait for one, and for requests of other processes. */
  readonly permitWait: PermitWait | null;
  readonly mode: Mode | null;
  /** A configured name. */
  readonly model: string | null;
  /** The upstream that was called last. */
  readonly upstream: string | null;
  /** When the first text arrived, in milliseconds after the request. */
  readonly firstTextMs: number | null;
  /** How many clients get the answer of a claim's run; `null` for all other requests, and for those of other processes. */
  readonly listening: number | null;
  /** The id of the request whose answer it gets; `null` for one that has joined none. */
  readonly joined: string | null;
  /** The name of the process that runs it; `null` where only one process uses the database. */
  readonly node: string | null;
}

/** The requests in progress, for operators and for the holders of keys. */
export interface RunningRequests {
  /** The requests whose key is known, in the order of their arrival. */
  list(): Promise<readonly RunningRequest[]>;
  /** The number of slots in use per id of a key or a group; those without any may be missing. */
  count(keyIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Stops one request; false when no request has this id, or it has another key. */
  cancel(requestId: string, keyId?: string): Promise<boolean>;
}
