import { budgetIdOf } from '../../src/domain/budgets/budget.ts';
import type { BudgetClaim } from '../../src/domain/budgets/budget.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type { Attempt, OpenedRecord, RecordBeginning, SettledRecord } from '../../src/domain/consumption.ts';
import { free } from '../../src/domain/pricing.ts';

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
  revokedAtMs: null,
  hasBalance: true,
  compatibility: {},
  isDeclared: false,
};

/** A record of that key's, as it begins, with a hold of 5 nano-USD. */
export const openedRecord: OpenedRecord = {
  requestId: 'req_1',
  keyId: payingKey.id,
  createdAtMs: 1,
  protocol: 'chat',
  mode: 'sync',
  model: 'm',
  upstream: 'u',
  tag: null,
  queuedMs: 0,
  price: free,
  hold: { nanos: 5, leastNanos: 1 },
};

/** What a request of that key asks of a budget. */
export const budgetClaim: BudgetClaim = {
  id: budgetIdOf(payingKey.id, { per: 'day', timeZone: 'UTC' }),
  startMs: 0,
  endMs: 86_400_000,
  limitNanos: 100,
  levelNanos: [1, 80],
};

/** A record that counts in it. */
export const budgetedRecord: OpenedRecord = {
  ...openedRecord,
  requestId: 'req_2',
  budget: budgetClaim,
};

/** What a settlement repeats of a record's beginning. */
export function beginningOf({
  requestId: _requestId,
  hold,
  budget,
  ...begun
}: OpenedRecord): RecordBeginning {
  const beginning = { ...begun, holdNanos: hold.nanos };
  return budget === undefined ? beginning : { ...beginning, budget: { ...budget, holdNanos: hold.nanos } };
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
export const settledBudgeted: SettledRecord = {
  ...settledRecord,
  requestId: budgetedRecord.requestId,
  begun: beginningOf(budgetedRecord),
};
