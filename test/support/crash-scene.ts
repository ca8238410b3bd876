import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import { readRecords } from './records.ts';
import { chatFrames, sendStream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { startServing } from './serving-process.ts';
import type { ServingProcess } from './serving-process.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** Errors that a signal raises in the process as a bug would; most of their messages quote a request. */
export const faults = {
  rejection: `Promise.resolve('canary-prompt').then(JSON.parse)`,
  exception: `setImmediate(() => { JSON.parse('canary-prompt') })`,
  text: `Promise.reject('canary-prompt')`,
  twice: `setImmediate(() => { throw new Error('first') }); setImmediate(() => { throw new Error('second') })`,
};

/** What a client sends in these tests. */
export const messages = [{ role: 'user', content: 'x' }];

/** Starts a gateway in which SIGUSR2 raises an error; all its threads run the other statements when they start. */
export async function serveWithFault(
  upstream: ScriptedUpstream,
  fault: string,
  alsoRun = '',
): Promise<ServingProcess> {
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
export async function readToEnd(
  response: Response,
): Promise<{ readonly text: string; readonly isBroken: boolean }> {
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

/** The fatal lines of its log. */
export function fatalLines({ server }: ServingProcess): readonly Record<string, unknown>[] {
  return server
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":60'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Has an error end a process with two streams and a request for a whole answer, and expects what clients and operators get. */
export async function expectCrash(
  upstream: ScriptedUpstream,
  kind: 'rejection' | 'exception' | 'text',
): Promise<void> {
  const serving = await serveWithFault(upstream, faults[kind]);
  const chat = await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
  const responses = await serving.post('/v1/responses', { model: 'small', stream: true, input: 'x' });
  const whole = serving.post('/v1/chat/completions', { model: 'small', messages });
  await eventually('all three run', () => upstream.running === 3);
  serving.server.signal('SIGUSR2');

  const [chatEnd, responsesEnd, answer] = await Promise.all([readToEnd(chat), readToEnd(responses), whole]);
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
}

/** Has an error end a process whose tokens are never counted, and expects a charge by an estimate. */
export async function expectEstimate(
  upstream: ScriptedUpstream,
  signals: readonly ('SIGUSR2' | 'SIGTERM')[],
): Promise<void> {
  upstream.play((response) => {
    sendStream(
      response,
      chatFrames(['one ', 'two']).filter((frame) => !frame.includes('usage')),
    ).end();
  });
  const hang = `if (process.getBuiltinModule('node:worker_threads').threadName === 'textgate-tokens')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
  const serving = await serveWithFault(upstream, faults.exception, hang);
  const chat = await serving.post('/v1/chat/completions', { model: 'small', stream: true, messages });
  await eventually('the answer is over', () => upstream.running === 0);
  for (const signal of signals) serving.server.signal(signal);
  expect((await readToEnd(chat)).text).toContain('[DONE]');
  expect((await serving.server.finished).code).toBe(1);
  const [record] = readRecords(join(serving.folder, 'data', 'textgate.db'));
  expect(record).toMatchObject({ outcome: 'completed', usage_source: 'counted', output_tokens: 2 });
  expect(record?.charge).toBeGreaterThan(0);
}
