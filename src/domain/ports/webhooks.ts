import type { EventType } from '../events.ts';

/** What came of one attempt. */
export type SendResult =
  | { readonly kind: 'delivered'; readonly status: number }
  /** `reason` has no address: the URL of a receiver may hold a secret. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs: number | null }
  /** The gateway ended the attempt itself. */
  | { readonly kind: 'interrupted' };

/** A receiver of events, as the config in force has it. */
export interface Webhook {
  readonly name: string;
  /** Its origin: neither its path nor its query, which may hold a secret. */
  readonly origin: string;
  readonly types: readonly EventType[];
  /** Sends one body, signed; within a deadline. Never rejects. */
  send(id: string, body: string, signal: AbortSignal): Promise<SendResult>;
}
