import type { Compatibility } from '../../protocol/contract/compatibility.ts';
import type { presentBudget } from './budget.ts';

/** A key as JSON for operators. In a file of its own, without what makes it: the console's modules know no Node. */
export interface ManagedKey {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly limits: {
    readonly concurrency: number;
    readonly requests_per_minute: number;
    readonly queue_wait_ms: number;
    readonly tokens_per_minute: number | null;
    readonly tokens_per_day: number | null;
  };
  readonly models: readonly string[] | null;
  readonly allow_from: readonly string[] | null;
  readonly tags: readonly string[];
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly compatibility: {
    readonly sampling: Compatibility['sampling'];
    readonly unknown_fields: Compatibility['unknownFields'];
    readonly responses_done: boolean;
    readonly usage_cost: boolean;
    readonly charge_comment: boolean;
  };
  readonly balance: string | null;
  readonly held: string;
  readonly spent: string;
  readonly budget: ReturnType<typeof presentBudget> | null;
  readonly group: string | null;
  /** How long a request of it goes on without its client, so that a retry may join it; `null` for not at all. */
  readonly join_retries_ms: number | null;
  readonly in_flight: number;
  /** How many of its requests the limits have refused today, in UTC, by limit. */
  readonly refused_today: Readonly<Record<string, number>>;
  /** The key's own mark of a low balance. */
  readonly low_balance: string | null;
  /** Its weight in the queues of upstreams. */
  readonly weight: number;
  /** Whether the config declares it. */
  readonly declared: boolean;
}

/** A group as JSON for operators, with what its keys share. */
export interface PresentedGroup {
  readonly name: string;
  readonly concurrency: number | null;
  readonly budget: ReturnType<typeof presentBudget> | null;
  readonly in_flight: number;
}
