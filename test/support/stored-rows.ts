import { budgetIdOf } from '../../src/domain/budgets/budget.ts';
import type { BudgetTerms } from '../../src/domain/budgets/budget.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type {
  Attempt,
  OpenedRecord,
  RecordBeginning,
  SettledRecord,
} from '../../src/domain/money/consumption.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { requestIdFor } from './request-ids.ts';

/** A key without settings of its own, which pays for its requests. */
export const payingKey: ApiKey = {
  id: 'key_a',
  name: 'a',
  createdAtMs: 1,
  limits: {},
  models: null,
  allowFrom: null,
  lowBalanceNanos: null,
  tags: [],
  expiresAt: null,
  budget: null,
  group: null,
  weight: 1,
  joinRetriesMs: null,
  revokedAtMs: null,
  hasBalance: true,
  compatibility: {},
  isDeclared: false,
};

/** A record of that key's, as it begins, with a hold of 5 nano-USD. */
export const openedRecord: OpenedRecord = {
  requestId: requestIdFor('1'),
  keyId: payingKey.id,
  protocol: 'chat',
  mode: 'sync',
  model: 'm',
  upstream: 'u',
  tag: null,
  group: null,
  queuedMs: 0,
  price: free,
  hold: { nanos: 5, leastNanos: 1 },
};

/** What a request of that key asks of a budget. */
export const budgetTerms: BudgetTerms = {
  id: budgetIdOf(payingKey.id, { per: 'day', timeZone: 'UTC' }),
  startMs: 0,
  endMs: 86_400_000,
  owner: 'key',
  limitNanos: 100,
  levels: [
    { part: 10, nanos: 1 },
    { part: 800, nanos: 80 },
  ],
};

/** What a request of a key in a group asks of the budget of the group. */
export const groupTerms: BudgetTerms = {
  ...budgetTerms,
  id: budgetIdOf(groupIdOf('g'), { per: 'day', timeZone: 'UTC' }),
  owner: 'group',
};

/** A record that counts in it. */
export const budgetedRecord: OpenedRecord = {
  ...openedRecord,
  requestId: requestIdFor('2'),
  budgets: [budgetTerms],
};

/** One that counts in the budget of a group. */
export const groupedRecord: OpenedRecord = {
  ...budgetedRecord,
  requestId: requestIdFor('3'),
  budgets: [groupTerms],
};

/** One that counts in both. */
export const twiceBudgetedRecord: OpenedRecord = {
  ...budgetedRecord,
  requestId: requestIdFor('4'),
  budgets: [budgetTerms, groupTerms],
};

/** What a settlement repeats of a record's beginning. */
export function beginningOf({
  requestId: _requestId,
  hold,
  budgets,
  ...begun
}: OpenedRecord): RecordBeginning {
  const beginning = { ...begun, holdNanos: hold.nanos };
  if (budgets === undefined) return beginning;
  return { ...beginning, budgets: budgets.map((budget) => ({ ...budget, holdNanos: hold.nanos })) };
}

/** An attempt that went well. */
export const plainAttempt: Attempt = {
  upstream: 'local',
  model: 'tiny',
  result: 'ok',
  startedMs: 1,
  durationMs: 2,
  usage: null,
  cause: null,
  upstreamError: null,
};

/** How it ends: whole, at 1 nano-USD. */
export const settledRecord: SettledRecord = {
  requestId: openedRecord.requestId,
  begun: beginningOf(openedRecord),
  outcome: 'completed',
  upstream: null,
  attempts: [],
  status: 200,
  usage: null,
  usageSource: 'none',
  price: null,
  chargeNanos: 1,
  firstTextMs: null,
  totalMs: 1,
};

/** How the record that counts in a budget ends. */
export const settledBudgeted = settlementOf(budgetedRecord);

/** The same end of another record. */
export function settlementOf(record: OpenedRecord): SettledRecord {
  return { ...settledRecord, requestId: record.requestId, begun: beginningOf(record) };
}
