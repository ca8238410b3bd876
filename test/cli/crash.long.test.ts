import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectCrash, expectEstimate, faults, messages, serveWithFault } from '../support/crash-scene.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play((response, { body }) => {
    if (body.includes('"stream":true')) sendStream(response, chatFrames(['one ', 'two']).slice(0, 2));
  });
});
afterEach(() => upstream.close());

// Two wait for a deadline, four seconds or more; crash.test.ts, shutdown-words.test.ts and, for an error that is a text,
// test/telemetry/logger.test.ts have the small cases.
describe('an uncaught error', () => {
  test('ends every running answer in its protocol, settles the delivered text, and exits with 1 (text)', () =>
    expectCrash(upstream, 'text'));

  test('charges an answer by an estimate when its tokens are still being counted (while the process drains)', () =>
    expectEstimate(upstream, ['SIGTERM', 'SIGUSR2']));

  test('ends the process by its deadline although the database is locked', async () => {
    const serving = await serveWithFault(upstream, faults.exception);
    await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
    const lock = new DatabaseSync(join(serving.folder, 'data', 'textgate.db'));
    lock.exec('BEGIN IMMEDIATE');
    const startedMs = performance.now();
    serving.server.signal('SIGUSR2');
    const { code } = await serving.server.finished;
    const tookMs = performance.now() - startedMs;
    lock.exec('ROLLBACK');
    lock.close();
    expect(code).toBe(1);
    // Five seconds, with a margin for a busy machine; without the deadline it takes eleven.
    expect(tookMs).toBeLessThan(8_000);
  }, 120_000);
});
