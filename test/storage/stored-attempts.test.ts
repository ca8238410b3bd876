import { describe, expect, test } from 'vitest';
import type { Attempt } from '../../src/domain/money/consumption.ts';
import { readAttempts, writeAttempts } from '../../src/storage/records/record-pages.ts';
import { plainAttempt } from '../support/stored-rows.ts';

const failed: Attempt = {
  ...plainAttempt,
  result: 'refused',
  cause: 'status 400',
  upstreamError: { status: 400, code: null, message: 'no' },
};

/** An attempt as earlier versions wrote it, in a record or in the spool. */
const older = { upstream: 'local', model: 'tiny', result: 'ok', durationMs: 2, usage: null };

describe('the attempts in a record', () => {
  test('are read as they were written', () => {
    expect(readAttempts(writeAttempts([plainAttempt, failed]))).toEqual([plainAttempt, failed]);
  });

  test('take no more room than before if nothing failed', () => {
    const { startedMs: _startedMs, ...rest } = JSON.parse(writeAttempts([plainAttempt]))[0];
    expect(rest).toEqual(older);
  });

  test('of an earlier version have no cause, words or start', () => {
    const read = { ...plainAttempt, startedMs: null };
    expect(readAttempts(JSON.stringify([older]))).toEqual([read]);
    expect(readAttempts(writeAttempts([older as Attempt]))).toEqual([read]);
  });
});
