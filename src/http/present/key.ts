import type { BudgetUse } from '../../domain/budgets/budget.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import type { Group } from '../../domain/limits/groups.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { Account } from '../../domain/ports/accounts.ts';
import type { RefusedByLimit } from '../../domain/ports/refusals.ts';
import type { Compatibility } from '../../protocol/contract/compatibility.ts';
import { formatUsd } from '../../shared/money.ts';
import { presentBudget } from './budget.ts';
import { isoTime } from './iso-time.ts';
import type { ManagedKey, PresentedGroup } from './managed-key.ts';

/** The settings of a key that has none of its own. */
export interface KeyDefaults {
  readonly limits: Limits;
  readonly compatibility: Compatibility;
}

/** What a key, or a group of keys, has paid for, and does now. */
interface KeyUse {
  readonly account: Account | undefined;
  readonly budget: BudgetUse | undefined;
  readonly inFlight: number | undefined;
  /** How many of its requests were refused today, by limit. */
  readonly refused: RefusedByLimit | undefined;
}

/** A key as JSON for operators and its holder: with defaults filled in, and never with its secret. */
export function presentKey(
  key: ApiKey,
  { account = emptyAccount, budget, inFlight = 0, refused = {} }: KeyUse,
  defaults: KeyDefaults,
) {
  const limits = { ...defaults.limits, ...key.limits };
  const compatibility = { ...defaults.compatibility, ...key.compatibility };
  return {
    id: key.id,
    name: key.name,
    created_at: isoTime(key.createdAtMs),
    limits: {
      concurrency: limits.concurrency,
      requests_per_minute: limits.requestsPerMinute,
      queue_wait_ms: limits.queueWaitMs,
      tokens_per_minute: limits.tokensPerMinute ?? null,
      tokens_per_day: limits.tokensPerDay ?? null,
    },
    models: key.models,
    allow_from: key.allowFrom,
    tags: key.tags,
    expires_at: isoTime(key.expiresAt),
    revoked_at: isoTime(key.revokedAtMs),
    compatibility: {
      sampling: compatibility.sampling,
      unknown_fields: compatibility.unknownFields,
      responses_done: compatibility.responsesDone,
      usage_cost: compatibility.usageCost,
      charge_comment: compatibility.chargeComment,
    },
    ...presentAccount(account),
    budget: budget === undefined ? null : presentBudget(budget),
    group: key.group,
    join_retries_ms: key.joinRetriesMs,
    in_flight: inFlight,
    refused_today: refused,
  };
}

/** A key as JSON for operators, who also see its own mark of a low balance, its weight, and whether the config declares it. */
export function presentManagedKey(...shown: Parameters<typeof presentKey>): ManagedKey {
  const [{ lowBalanceNanos, weight, isDeclared }] = shown;
  const lowBalance = lowBalanceNanos === null ? null : formatUsd(lowBalanceNanos);
  return { ...presentKey(...shown), low_balance: lowBalance, weight, declared: isDeclared };
}

/** A key's account as JSON, in USD. */
export function presentAccount({ balanceNanos, heldNanos, spentNanos }: Account) {
  return {
    balance: balanceNanos === null ? null : formatUsd(balanceNanos),
    held: formatUsd(heldNanos),
    spent: formatUsd(spentNanos),
  };
}

/** The account of a key without payments or requests. */
const emptyAccount: Account = { balanceNanos: null, heldNanos: 0, spentNanos: 0 };

/** A group as JSON, with what its keys do and have spent together. */
export function presentGroup(
  { name, concurrency }: Group,
  { budget, inFlight = 0 }: Pick<KeyUse, 'budget' | 'inFlight'>,
): PresentedGroup {
  return {
    name,
    concurrency,
    budget: budget === undefined ? null : presentBudget(budget),
    in_flight: inFlight,
  };
}
