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

/** What a settlement repeats of a record's beginning. */
export function beginningOf({ requestId: _requestId, hold, ...begun }: OpenedRecord): RecordBeginning {
  return { ...begun, holdNanos: hold.nanos };
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
