import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  expectCrash,
  expectEstimate,
  fatalLines,
  faults,
  messages,
  readToEnd,
  serveWithFault,
} from '../support/crash-scene.ts';
import { makeFifo } from '../support/failing-outputs.ts';
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

describe('an uncaught error', () => {
  test.each(['rejection', 'exception'] as const)(
    'ends every running answer in its protocol, settles the delivered text, and exits with 1 (%s)',
    (kind) => expectCrash(upstream, kind),
  );

  test('ends the process also when it is raised twice, or while the process drains', async () => {
    const serving = await serveWithFault(upstream, faults.twice);
    const chat = await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
    serving.server.signal('SIGTERM');
    await serving.server.printed(/textgate: shutting down/);
    serving.server.signal('SIGUSR2');
    expect((await readToEnd(chat)).text).toContain('"code":"server_error"');
    expect((await serving.server.finished).code).toBe(1);
    expect(fatalLines(serving).map(({ reason }) => reason)).toEqual(['first', 'second']);
  }, 120_000);

  test('charges an answer by an estimate when its tokens are still being counted (at once)', () =>
    expectEstimate(upstream, ['SIGUSR2']));

  test('ends the process although a pool thread hangs in a write, for which process.exit would wait', async () => {
    const hang = `const { openSync, write } = process.getBuiltinModule('node:fs');
      write(openSync('${makeFifo()}', 'r+'), Buffer.alloc(1_000_000), () => {});`;
    const serving = await serveWithFault(upstream, `${hang} ${faults.exception}`);
    serving.server.signal('SIGUSR2');
    expect((await serving.server.finished).code).toBe(1);
  }, 120_000);
});
