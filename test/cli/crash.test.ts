import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeFifo } from '../support/failing-outputs.ts';
import { readRecords } from '../support/records.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startServing } from '../support/serving-process.ts';
import type { ServingProcess } from '../support/serving-process.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

/** Errors that a signal raises in the process as a bug would; most of their messages quote a request. */
const faults = {
  rejection: `Promise.resolve('canary-prompt').then(JSON.parse)`,
  exception: `setImmediate(() => { JSON.parse('canary-prompt') })`,
  text: `Promise.reject('canary-prompt')`,
  twice: `setImmediate(() => { throw new Error('first') }); setImmediate(() => { throw new Error('second') })`,
};

let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play((response, { body }) => {
    if (body.includes('"stream":true')) sendStream(response, chatFrames(['one ', 'two']).slice(0, 2));
  });
});
afterEach(() => upstream.close());

/** Starts a gateway in which SIGUSR2 raises an error; all its threads run the other statements when they start. */
async function serveWithFault(fault: string, alsoRun = ''): Promise<ServingProcess> {
  const preload = join(makeTemporaryFolder(), 'fault.mjs');
  writeFileSync(preload, `process.on('SIGUSR2', () => { ${fault} });\n${alsoRun}`);
  const config = {
    upstreams: { local: { url: upstream.url } },
    models: {
      small: { routes: [{ upstream: 'local', model: 'tiny' }], price: { input: '1', output: '2' } },
    },
  };
  return startServing({
    config,
    environment: { NODE_OPTIONS: `--import=${preload}` },
    keySettings: { balance: '5.00', concurrency: 10 },
  });
}

/** Reads a stream until it ends or breaks. */
async function readToEnd(response: Response): Promise<{ readonly text: string; readonly isBroken: boolean }> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      text += part.value;
    return { text, isBroken: false };
  } catch {
    return { text, isBroken: true };
  }
}

const messages = [{ role: 'user', content: 'x' }];

function fatalLines({ server }: ServingProcess): readonly Record<string, unknown>[] {
  return server
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":60'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('an uncaught error', () => {
  test.each(['rejection', 'exception', 'text'] as const)(
    'ends every running answer in its protocol, settles the delivered text, and exits with 1 (%s)',
    async (kind) => {
      const serving = await serveWithFault(faults[kind]);
      const chat = await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
      const responses = await serving.post('/v1/responses', { model: 'small', stream: true, input: 'x' });
      const whole = serving.post('/v1/chat/completions', { model: 'small', messages });
      await eventually('all three run', () => upstream.running === 3);
      serving.server.signal('SIGUSR2');

      const [chatEnd, responsesEnd, answer] = await Promise.all([
        readToEnd(chat),
        readToEnd(responses),
        whole,
      ]);
      expect(chatEnd.text).toContain('"code":"server_error"');
      expect(chatEnd.text).not.toContain('[DONE]');
      expect(chatEnd.isBroken).toBe(true);
      expect(responsesEnd.text).toContain('event: response.failed');
      expect(answer.status).toBe(500);
      expect(await answer.json()).toMatchObject({ error: { code: 'server_error' } });

      expect((await serving.server.finished).code).toBe(1);
      const records = readRecords(join(serving.folder, 'data', 'textgate.db'));
      const settled = records.map(({ mode, outcome, charge }) => ({ mode, outcome, isPaid: charge > 0 }));
      expect(settled.toSorted((a, b) => b.mode.localeCompare(a.mode))).toEqual([
        { mode: 'sync', outcome: 'crashed', isPaid: false },
        { mode: 'stream', outcome: 'crashed', isPaid: true },
        { mode: 'stream', outcome: 'crashed', isPaid: true },
      ]);
      expect(fatalLines(serving)).toMatchObject([
        {
          msg: 'uncaught error: shutting down',
          error: kind === 'text' ? 'string' : 'SyntaxError',
        },
      ]);
      expect(serving.server.output()).not.toContain('canary');
    },
    120_000,
  );

  test('ends the process also when it is raised twice, or while the process drains', async () => {
    const serving = await serveWithFault(faults.twice);
    const chat = await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
    serving.server.signal('SIGTERM');
    await serving.server.printed(/textgate: shutting down/);
    serving.server.signal('SIGUSR2');
    expect((await readToEnd(chat)).text).toContain('"code":"server_error"');
    expect((await serving.server.finished).code).toBe(1);
    expect(fatalLines(serving).map(({ reason }) => reason)).toEqual(['first', 'second']);
  }, 120_000);

  test.each([
    { cause: 'at once', signals: ['SIGUSR2'] },
    { cause: 'while the process drains', signals: ['SIGTERM', 'SIGUSR2'] },
  ] as const)(
    'charges an answer by an estimate when its tokens are still being counted ($cause)',
    async ({ signals }) => {
      upstream.play((response) => {
        sendStream(
          response,
          chatFrames(['one ', 'two']).filter((frame) => !frame.includes('usage')),
        ).end();
      });
      const hang = `if (process.getBuiltinModule('node:worker_threads').threadName === 'textgate-tokens')
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
      const serving = await serveWithFault(faults.exception, hang);
      const chat = await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
      await eventually('the answer is over', () => upstream.running === 0);
      for (const signal of signals) serving.server.signal(signal);
      expect((await readToEnd(chat)).text).toContain('[DONE]');
      expect((await serving.server.finished).code).toBe(1);
      const [record] = readRecords(join(serving.folder, 'data', 'textgate.db'));
      expect(record).toMatchObject({ outcome: 'completed', usage_source: 'counted', output_tokens: 2 });
      expect(record?.charge).toBeGreaterThan(0);
    },
    120_000,
  );

  test('ends the process although a pool thread hangs in a write, for which process.exit would wait', async () => {
    const hang = `const { openSync, write } = process.getBuiltinModule('node:fs');
      write(openSync('${makeFifo()}', 'r+'), Buffer.alloc(1_000_000), () => {});`;
    const serving = await serveWithFault(`${hang} ${faults.exception}`);
    serving.server.signal('SIGUSR2');
    expect((await serving.server.finished).code).toBe(1);
  }, 120_000);

  test('ends the process by its deadline although the database is locked', async () => {
    const serving = await serveWithFault(faults.exception);
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
