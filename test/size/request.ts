import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Session } from 'node:inspector/promises';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { createGateway } from '../../src/index.ts';
import { readScript } from '../support/script-options.ts';

/**
 * Prints the files of src whose functions one request runs, from the socket to the ledger, with how many functions of each:
 * `npm run size request`. The gateway is warm, its database is in memory and so in its own thread, its upstream speaks HTTP.
 */
readScript({ name: 'size request', options: {} });

const sources = pathToFileURL(join(import.meta.dirname, '..', '..', 'src/')).href;

const choice = { index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null };
const frame = (choices: readonly object[], more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const message = { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' };
const upstream = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => (body += text));
  request.on('end', () => {
    if (!(JSON.parse(body) as { stream?: boolean }).stream) {
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          id: 'x',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [message],
          usage,
        }),
      );
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    response.write(frame([choice]));
    response.end(
      `${frame([{ index: 0, delta: {}, finish_reason: 'stop' }])}${frame([], { usage })}data: [DONE]\n\n`,
    );
  });
}).listen(0, '127.0.0.1');
await once(upstream, 'listening');
const { port } = upstream.address() as AddressInfo;

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const gateway = createGateway(
  {
    server: { port: 0 },
    admin: { port: 0 },
    storage: { url: 'sqlite::memory:' },
    upstreams: { local: { url: `http://127.0.0.1:${port}/v1` } },
    models: {
      small: { routes: [{ upstream: 'local', model: 'm' }], price: { input: '1', output: '2' } },
    },
  },
  { logLevel: 'silent' },
);
const { url } = await gateway.listen();
const issued = await gateway.keys.create({ name: 'one', requestsPerMinute: 1_000 });

await report('a whole answer', false);
await report('a streamed answer', true);
await gateway.close();
upstream.close();

async function report(name: string, stream: boolean): Promise<void> {
  for (let warm = 0; warm < 50; warm++) await ask(stream);
  await rest();
  await session.post('Profiler.takePreciseCoverage');
  await ask(stream);
  await rest();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const files = result
    .filter(({ url: file }) => file.startsWith(sources))
    .map(({ url: file, functions }) => ({
      file: file.slice(sources.length),
      count: functions.filter(({ ranges: [whole] }) => whole !== undefined && whole.count > 0).length,
    }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => (a.file < b.file ? -1 : 1));
  const functions = files.reduce((sum, { count }) => sum + count, 0);
  process.stdout.write(`${name}: ${files.length} files, ${functions} functions\n`);
  for (const { file, count } of files) process.stdout.write(`${String(count).padStart(5)}  ${file}\n`);
}

async function ask(stream: boolean): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${issued.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'a question' }], stream }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a request was answered with ${response.status}: ${text}`);
}

/** Resolves when what a request leaves for later, such as its settlement's log line, has been done. */
async function rest(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
