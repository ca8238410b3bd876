import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { readAnswer } from '../support/client-answer.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { chatFrames, sayTexts } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

/**
 * Two equal upstreams under load; one repeatedly dies with all its connections and recovers. Clients must notice next to
 * nothing, and the recovered upstream must soon get its share of the load again.
 * `npm run chaos upstreams -- --cycles 5 --seed 1`
 */

const { cycles, seed: given } = readScript({
  name: 'chaos upstreams',
  options: { cycles: countOption('deaths and returns of the upstream', 5), seed: seedOption(null) },
});
const workers = 16;
const maxFailedShare = 0.001;
const maxReturnMs = 10_000;
/** The shortest time that the upstream is up and down, and the longest random addition, in milliseconds. */
const leastMs = 2_000;
const moreMs = 3_000;
/** The duration of one answer, in milliseconds: long enough that some are interrupted whenever the upstream dies. */
const answerMs = 2;

const { random, seed } = randomNumbers(given);
const served = { dying: 0, steady: 0 };

async function listen(name: keyof typeof served, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      served[name]++;
      if (!body.includes('"stream":true')) return void sayTexts(['one ', 'two'])(response, { body } as never);
      const frames = chatFrames(['one ', 'two']);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames.slice(0, 2).join(''));
      setTimeout(() => response.end(frames.slice(2).join('')), answerMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

let dying = await listen('dying', 0);
const steady = await listen('steady', 0);
const { port } = dying.address() as AddressInfo;
const url = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
const gateway = await startGateway({
  logLevel: 'silent',
  limits: { concurrency: 1_000, requestsPerMinute: 100_000_000 },
  upstreams: { dying: { url: url(dying) }, steady: { url: url(steady) } },
  routes: [
    { upstream: 'dying', model: 'm', weight: 1 },
    { upstream: 'steady', model: 'm', weight: 1 },
  ],
});

const load = new AbortController();
const counts = { asked: 0, failed: 0 };
const codes = new Map<string, number>();
async function work(): Promise<void> {
  while (!load.signal.aborted) {
    const answer = await readAnswer(gateway, random() < 0.5 ? 'chat' : 'responses', random() < 0.5);
    counts.asked++;
    if (answer.ending === 'stop' && answer.text === 'one two') continue;
    counts.failed++;
    codes.set(String(answer.code), (codes.get(String(answer.code)) ?? 0) + 1);
  }
}
const working = Array.from({ length: workers }, work);

let slowestReturnMs = 0;
for (let cycle = 0; cycle < cycles; cycle++) {
  await wait(leastMs + random() * moreMs);
  dying.close();
  dying.closeAllConnections();
  await wait(leastMs + random() * moreMs);
  const before = served.dying;
  dying = await listen('dying', port);
  const startedMs = performance.now();
  while (served.dying < before + workers && performance.now() - startedMs < 2 * maxReturnMs) await wait(5);
  slowestReturnMs = Math.max(slowestReturnMs, performance.now() - startedMs);
}
load.abort();
await Promise.all(working);
await gateway.close();
for (const server of [dying, steady]) server.close();

const share = counts.failed / counts.asked;
process.stdout.write(
  `${cycles} deaths: ${counts.asked} requests, ${counts.failed} failed (${(share * 100).toFixed(4)} %) ` +
    `${JSON.stringify(Object.fromEntries(codes))}, slowest return ${Math.round(slowestReturnMs)} ms (seed ${seed})\n`,
);
process.exit(share <= maxFailedShare && slowestReturnMs <= maxReturnMs ? 0 : 1);
