import { expect, test } from 'vitest';
import { presentRecordsAsCsv } from '../../src/http/present/record.ts';
import { free } from '../../src/domain/money/pricing.ts';
import type { ConsumptionRecord } from '../../src/domain/money/consumption.ts';

const record: ConsumptionRecord = {
  requestId: 'req_1',
  keyId: 'key_1',
  createdAtMs: 0,
  protocol: 'chat',
  mode: 'sync',
  model: 'm',
  upstream: 'local',
  tag: null,
  group: null,
  outcome: 'completed',
  status: 200,
  usage: null,
  usageSource: 'none',
  price: free,
  attempts: [],
  holdNanos: 0,
  chargeNanos: 0,
  unbookedNanos: 0,
  queuedMs: 1,
  firstTextMs: null,
  totalMs: 2,
  settledMs: 3,
};

test.each([
  ['a\u001b[2J', String.raw`a\u{1b}[2J`],
  ['a\r\nreq_forged,key', String.raw`"a\r\nreq_forged,key"`],
  ['\t=1+1', String.raw`\t=1+1`],
  ['=1+1', "'=1+1"],
  ['-1+1', "'-1+1"],
  ['say "x", y', '"say ""x"", y"'],
  ['org/plain-model', 'org/plain-model'],
])('the CSV has the model %j as one harmless cell', (model, cell) => {
  const [, row, rest] = presentRecordsAsCsv([{ ...record, model }]).split('\r\n');
  expect(row).toContain(`,sync,${cell},local,`);
  expect(rest).toBe('');
});
