import { formatUsd } from '../shared/money.ts';
import { readBudgetId } from './budgets/budget.ts';
import { groupNameOf } from './limits/groups.ts';

/** What webhooks are sent. */
export const eventTypes = [
  'balance.low',
  'budget.level',
  'key.expiring',
  'upstream.down',
  'upstream.up',
  'ledger.imbalance',
] as const;

export type EventType = (typeof eventTypes)[number];

/** The event that `textgate webhooks test` sends, to any webhook. It is in no outbox. */
export const testEventType = 'webhook.test';

/** When an event of each type comes, and the fields of its `data`, for the documentation. */
export const describedEvents: Readonly<
  Record<EventType | typeof testEventType, { readonly when: string; readonly data: string }>
> = {
  'balance.low': {
    when: "a charge takes a key's balance, with what is held of it, below its `lowBalance`: once, until a credit lifts it again",
    data: '`key.id`, `key.name`; `balance` and `low_balance` in USD',
  },
  'budget.level': {
    when: 'a charge takes what is spent in a period of a budget to one of its `warnAt` parts: once for each part and period; where one charge reaches several, for the highest',
    data: '`key.id` and `key.name`, or `group` for the budget of a group; `level`, such as `0.8`; `amount` and `spent` in USD; `per`, `time_zone`, `period_start`, `refills_at`',
  },
  'key.expiring': {
    when: 'a key expires within one of the times of `events.keyExpiring`: once for each time and expiry',
    data: '`key.id`, `key.name`, `expires_at`; `within`, such as `7d`',
  },
  'upstream.down': {
    when: 'the circuit of an upstream has been open for `events.upstreamDown` without a break, at any node',
    data: '`upstream`, the name in the config',
  },
  'upstream.up': {
    when: 'an upstream that was reported as down has answered for as long, and no node sees it down any more',
    data: '`upstream`; `down_since`, when `upstream.down` was reported',
  },
  'ledger.imbalance': {
    when: 'an audit found a difference between accounts and ledger: once a day as long as the same one is found',
    data: '`imbalance` in USD; `faults`, the number of accounts that differ',
  },
  'webhook.test': {
    when: 'an operator asks for it by `textgate webhooks test`',
    data: '`webhook`, its name',
  },
};

/** Something that happened once: events of one `name` are one event, whichever node adds it and however often. */
export interface NewEvent {
  readonly name: string;
  readonly type: EventType;
  /** What it is about: the events of one subject are delivered in their order. */
  readonly subject: string;
  /** Names, ids, times and amounts: no prompts, no secrets, no addresses of upstreams. */
  readonly data: Readonly<Record<string, unknown>>;
  /** Until when its name must be remembered, in milliseconds since 1970; by default as long as its deliveries. */
  readonly keptUntilMs?: number;
}

/** An event in the outbox. */
export interface StoredEvent {
  /** `evt_` and 32 hexadecimal digits. */
  readonly id: string;
  readonly type: string;
  readonly createdAtMs: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The subjects of events. */
export const subjects = {
  key: (id: string) => `key:${id}`,
  upstream: (name: string) => `upstream:${name}`,
  ledger: 'ledger',
} as const;

/** The name of the event that a key expires within a time, such as `7d`. `selectExpiring` writes it, too. */
export function nameOfExpiry(keyId: string, within: string, expiresAtMs: number): string {
  return `key.expiring:${keyId}:${within}:${expiresAtMs}`;
}

/** The body of an event: the same bytes in every attempt, which the signature covers. */
export function writeEvent({ id, type, createdAtMs, data }: StoredEvent): string {
  const created_at = new Date(createdAtMs).toISOString();
  return JSON.stringify({ id, type, created_at, data: presentData[type]?.(data) ?? data });
}

/** What triggers of the database wrote, which has no decimal numbers: nano-USD become USD. */
const presentData: Readonly<Record<string, (data: StoredEvent['data']) => object>> = {
  'balance.low': presentBalance,
  'budget.level': presentLevel,
};

function presentLevel(data: StoredEvent['data']): object {
  const { ownerId, per, timeZone } = readBudgetId(String(data['budget']));
  const group = groupNameOf(ownerId);
  const timeOf = (name: string): string => new Date(Number(data[name])).toISOString();
  return {
    ...(group === null ? { key: { id: ownerId, name: data['key_name'] } } : { group }),
    level: String(Number(data['level']) / 1_000),
    amount: formatUsd(Number(data['amount_nanos'])),
    spent: formatUsd(Number(data['spent_nanos'])),
    per,
    time_zone: timeZone,
    period_start: timeOf('period_start'),
    refills_at: timeOf('period_end'),
  };
}

function presentBalance(data: StoredEvent['data']): object {
  return {
    key: { id: data['key_id'], name: data['key_name'] },
    balance: formatUsd(Number(data['balance_nanos'])),
    low_balance: formatUsd(Number(data['low_balance_nanos'])),
  };
}
