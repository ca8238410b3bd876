import { describe, expect, test } from 'vitest';
import type { Attempt, SettledRecord } from '../../src/domain/money/consumption.ts';
import { createRecordPages } from '../../src/storage/records/record-pages.ts';
import { createStore } from '../../src/storage/store.ts';
import { openedRecord, payingKey, plainAttempt, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

const usage = {
  inputTokens: 7,
  cachedInputTokens: 2,
  cacheWriteTokens: 0,
  outputTokens: 5,
  reasoningTokens: 0,
  totalTokens: 12,
};

const failed: Attempt = {
  ...plainAttempt,
  result: 'refused',
  cause: 'status 400',
  upstreamError: { status: 400, code: null, message: 'no' },
};
const answered: Attempt = { ...plainAttempt, usage };
const counted = { upstream: 'local', usage, usageSource: 'upstream' } as const;

/** How a request ends whose upstream reported its usage, and how many of its attempts are written as JSON. */
const ends: readonly [what: string, end: Partial<SettledRecord>, written: boolean][] = [
  ['none', { attempts: [] }, false],
  ['one that says what the record says', { ...counted, attempts: [answered] }, false],
  [
    'one of an upstream that counts nothing',
    { ...counted, usageSource: 'counted', attempts: [plainAttempt] },
    false,
  ],
  ['one that failed', { upstream: 'local', attempts: [failed] }, true],
  ['one that failed, and one that answered', { ...counted, attempts: [failed, answered] }, true],
  ['one of another upstream', { ...counted, upstream: 'other', attempts: [answered] }, true],
  [
    'one that counted something else',
    { ...counted, attempts: [{ ...answered, usage: { ...usage, outputTokens: 6 } }] },
    true,
  ],
  ['one that counted nothing', { ...counted, attempts: [plainAttempt] }, true],
  [
    'one whose counts do not add up',
    {
      ...counted,
      usage: { ...usage, totalTokens: 13 },
      attempts: [{ ...answered, usage: { ...usage, totalTokens: 13 } }],
    },
    true,
  ],
  ['one without its start', { ...counted, attempts: [{ ...answered, startedMs: null }] }, true],
];

describe('the attempts in a record', () => {
  test.each(ends)('are read as they were: %s', async (_what, end, written) => {
    const engine = openTestEngine(':memory:');
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    await store.open(openedRecord);
    await store.settle({ ...settledRecord, ...end });
    const found = await createRecordPages(engine).findRecord(openedRecord.requestId, null);
    expect(found?.attempts).toEqual(end.attempts);
    const [[row] = []] = await engine.read([{ sql: 'SELECT attempts FROM record_rows', values: [] }]);
    expect(typeof row?.['attempts'] === 'string').toBe(written);
    await engine.close();
  });
});
