import type { EventType, NewEvent, StoredEvent } from '../events.ts';

/** A key that expires soon. */
interface ExpiringKey {
  readonly id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
}

/** What the events of the database depend on, of the config in force. */
export interface EventSettings {
  /** The balance, in nano-USD, below which keys without an own one are reported; `null` if no webhook wants to know. */
  readonly lowBalanceNanos: number | null;
  /** Whether a webhook wants to know of the levels that budgets reach. */
  readonly budgetLevels: boolean;
}

/**
 * Adds events to the outbox of the database, each once for all nodes. Those of balances and budgets are added by the database
 * itself.
 */
export interface Outbox {
  /** Adds events whose names are not in it yet; resolves with how many were added. */
  add(events: readonly NewEvent[]): Promise<number>;
  /** Writes the settings, if others are stored, and gives all accounts their marks, some at a time. */
  storeSettings(settings: EventSettings): Promise<void>;
  /**
   * Keys in use that expire after one time and not after another one, in milliseconds since 1970, without an event of the name
   * that `nameOfExpiry` gives for `within`; some hundred at most.
   */
  listExpiring(afterMs: number, untilMs: number, within: string): Promise<readonly ExpiringKey[]>;
}

/** The outages of upstreams as all nodes see them. */
export interface UpstreamOutages {
  /** The upstreams that were reported as down, each with whether this process sees it down. */
  list(): Promise<readonly { readonly upstream: string; readonly isSeenHere: boolean }[]>;
  /** Notes that this process sees an upstream down: the first one that does adds the event. Resolves with whether it did. */
  sawDown(upstream: string): Promise<boolean>;
  /** Notes that this process sees it up: if no process sees it down any more, adds the event. Resolves with whether it did. */
  sawUp(upstream: string): Promise<boolean>;
  /** Forgets an upstream that is configured no more, unless another process sees it down. */
  forget(upstream: string): Promise<void>;
}

export type DeliveryState = 'waiting' | 'delivered' | 'dead';

/** An event on its way to a webhook. */
export interface DueDelivery {
  readonly event: StoredEvent;
  readonly subject: string;
  /** How many attempts failed. */
  readonly attempts: number;
}

/** A delivery as operators see it. */
export interface Delivery {
  readonly number: number;
  readonly event: StoredEvent;
  readonly webhook: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** When the next attempt is due, in milliseconds since 1970; `null` behind an earlier event of its subject, and at the end. */
  readonly dueAtMs: number | null;
  readonly endedAtMs: number | null;
  /** What came of the last attempt, such as `status 500`. */
  readonly result: string | null;
}

/** The webhooks in force, with the types of events that each wants. */
export type Subscriptions = readonly { readonly name: string; readonly types: readonly EventType[] }[];

/**
 * The deliveries of events to webhooks. Of one webhook and subject, an event is due when the earlier ones were delivered or
 * given up. All times are those of the database.
 */
export interface Deliveries {
  /** Makes deliveries of new events for the webhooks that want them; resolves with how many events were routed. */
  route(webhooks: Subscriptions): Promise<number>;
  /** The deliveries of a webhook that are due, the longest due first. */
  listDue(webhook: string, limit: number): Promise<readonly DueDelivery[]>;
  /** Ends a delivery that waits, and makes the next event of its subject due. */
  end(due: DueDelivery, webhook: string, state: 'delivered' | 'dead', result: string): Promise<void>;
  /** Counts a failed attempt, and has the next one wait for `delayMs`. */
  retry(due: DueDelivery, webhook: string, delayMs: number, result: string): Promise<void>;
  /** How long the oldest event that waits for one of some webhooks has been waiting, in milliseconds; `null` if none does. */
  oldestAgeMs(webhooks: readonly string[]): Promise<number | null>;
  /** Gives up what waits for webhooks that are configured no more, and removes what ended before a time ago. */
  clean(
    webhooks: Subscriptions,
    ages: { readonly givenUpMs: number; readonly keptMs: number },
  ): Promise<void>;
}

/** What operators read and do of deliveries. */
export interface ManagedDeliveries {
  /** A page, newest first, behind the delivery with the number of `before`. */
  list(
    filter: { readonly webhook?: string | undefined; readonly state?: DeliveryState | undefined },
    limit: number,
    before: number | null,
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly next: number | null }>;
  /** How many deliveries to each of some webhooks wait, and how many were given up. */
  count(webhooks: readonly string[]): Promise<readonly { readonly waiting: number; readonly dead: number }[]>;
  /** Has an event delivered again to those of some webhooks that got it; resolves with their names. */
  resend(eventId: string, webhooks: readonly string[]): Promise<readonly string[]>;
}

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
