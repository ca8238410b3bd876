import type { Settled } from '../results.ts';
import type { AnswerSource } from './claimed-run.ts';

/** The run of a request of a key that is asked for. */
export interface WantedRequest {
  readonly kind: 'request';
  readonly keyId: string;
  readonly requestId: string;
}

/** A run that is asked for: that of a request, or one of which a retry has come, by SHA-256 of what it asks. */
export type WantedRun =
  | WantedRequest
  | { readonly kind: 'retry'; readonly keyId: string; readonly request: string };

/** Why a process does not send a run: it has none, too many clients have joined it, or not all of its text is kept. */
export type PeerRefusal = 'none' | 'crowded' | 'too_long';

/** What a process sends another one of a run: what it is, its text, and its end; or why it sends none. */
export type RunEvent =
  | {
      readonly kind: 'joined';
      readonly requestId: string;
      readonly asked: AnswerSource;
      readonly isReplay: boolean;
    }
  | { readonly kind: 'text'; readonly deltas: readonly string[] }
  /** No text follows before the end. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'ended'; readonly settled: Settled }
  | { readonly kind: 'refused'; readonly reason: PeerRefusal };

/** The events of a run; none after `ended` or `refused`, and a connection that ends before is a cut. */
export interface RunEvents {
  /** The next one; `null` where the connection broke, or was silent for too long. */
  next(): Promise<RunEvent | null>;
  /** Leaves the run. */
  leave(): void;
}

/** A run that another process has: what it is, and what follows. */
export interface FoundRun {
  readonly first: Extract<RunEvent, { readonly kind: 'joined' }>;
  readonly events: RunEvents;
  /** Tells the process that has it that a client has all of it. */
  tellDelivered(): void;
}

/** What is asked of a response. */
export type ResponseAction = 'read' | 'cancel';

/** The other processes that use the same database, as one of them asks them for what they alone have in memory. */
export interface Peers {
  /**
   * Asks for a run, for one client: of the process with a lease under the id `owner`, or of all, where it is `null`. Resolves
   * with its first event, and those behind it; with `unreachable` where one that may have it says nothing.
   */
  join(
    wanted: WantedRun,
    owner: string | null,
    signal: AbortSignal,
  ): Promise<FoundRun | PeerRefusal | 'unreachable'>;
  /** Reads or cancels a response, whichever process has it; resolves with its object as JSON. */
  respond(
    wanted: WantedRequest,
    action: ResponseAction,
  ): Promise<{ readonly body: string } | 'none' | 'unreachable'>;
}

/** The side of a process that is asked: what it answers, for one client of the other one. */
export interface PeerAnswer {
  /** Sends an event; returns whether the other process keeps up. */
  send(event: RunEvent): boolean;
  /** Resolves when it has read what was sent, or has left; `null` while it keeps up. */
  drained(): Promise<void> | null;
  /** Calls back when it leaves before the end, or at once if it already has. */
  onLeft(callback: () => void): void;
  /** Ends the connection; resolves when all is sent, or can't be. */
  end(): Promise<void>;
  /** Breaks the connection, so that what was sent does not pass for complete. */
  cut(): Promise<void>;
}
