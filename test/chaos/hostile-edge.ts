import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { residentMib } from './resident-memory.ts';

/**
 * A paying client streams from a gateway while thousands of hostile connections without a key open and close. The process
 * must survive, the client's answers must stay complete and nearly as fast, and the memory must be freed afterwards.
 * `npm run chaos edge -- --connections 3000 --at-a-time 600 --seed 1`
 */

const {
  connections,
  'at-a-time': atATime,
  seed: given,
} = readScript({
  name: 'chaos edge',
  options: {
    connections: countOption('hostile connections', 3_000),
    // Thousands of writers in one process would starve the gateway of its share of the cores.
    'at-a-time': countOption('how many of them are open at a time', 600),
    seed: seedOption(null),
  },
});
const phaseMs = 20_000;
const warmUpMs = 5_000;
/** The deadline of the attack, in milliseconds; it usually takes a minute or two. */
const maxAttackMs = 180_000;
/** How long the last connections may take to end, and then the memory to be freed, in milliseconds. */
const settleMs = 15_000;
const returnMs = 30_000;
const payingWorkers = 2;
const maxSlowdown = 3;
/** The smallest quiet p99 that is assumed, in milliseconds: shared cores delay some answers in any phase. */
const leastQuietP99Ms = 50;
const maxMemoryGrowth = 1.2;

const { seed } = randomNumbers(given);
const frames = chatFrames(['one ', 'two ', 'three']);
const upstream = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(frames.join(''));
  });
});
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
const { port } = upstream.address() as AddressInfo;

const gateway = fork(
  join(import.meta.dirname, '..', 'support', 'forked-gateway-child.ts'),
  [`http://127.0.0.1:${port}/v1`],
  { execArgv: ['--expose-gc'] },
);
let deaths = 0;
gateway.once('exit', () => deaths++);
const [{ url, key }] = (await once(gateway, 'message')) as [{ url: string; key: string }];

/** The gateway's memory after a garbage collection, in MiB. */
async function memory(): Promise<number> {
  if (gateway.exitCode !== null || gateway.signalCode !== null) return Infinity;
  gateway.send('memory');
  const [{ memory: usage }] = (await once(gateway, 'message')) as [{ memory: NodeJS.MemoryUsage }];
  return usage.rss / 1_048_576;
}

/** The gateway's resident memory in MiB: a garbage collection would pause it for longer than an attack. */
const residentNow = (): number => residentMib(gateway.pid);

interface Phase {
  readonly p50: number;
  readonly p99: number;
  readonly answers: number;
  readonly failed: number;
}

/** Streams answers one after another until `over`; resolves with their durations in milliseconds. */
async function stream(over: Promise<unknown>): Promise<Phase> {
  const times: number[] = [];
  let failed = 0;
  const ended = new AbortController();
  void over.then(() => ended.abort());
  const work = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const startedMs = performance.now();
      const text = await ask().catch(() => '');
      times.push(performance.now() - startedMs);
      if (!text.endsWith('data: [DONE]\n\n')) failed++;
      await wait(5);
    }
  };
  await Promise.all(Array.from({ length: payingWorkers }, work));
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(share * (times.length - 1))] ?? Infinity;
  return { p50: at(0.5), p99: at(0.99), answers: times.length, failed };
}

async function ask(): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] }),
  });
  return response.text();
}

async function attack(): Promise<Record<string, number>> {
  const clients: ChildProcess = fork(
    join(import.meta.dirname, 'hostile-clients.ts'),
    [url, String(connections), String(atATime)],
    { env: { ...process.env, FC_SEED: String(seed) } },
  );
  const late = setTimeout(() => clients.kill('SIGKILL'), maxAttackMs);
  const counts: Record<string, number> = {};
  clients.once('message', (told: Record<string, number>) => Object.assign(counts, told));
  await once(clients, 'close');
  clearTimeout(late);
  return counts;
}

await stream(wait(warmUpMs));
const quiet = await stream(wait(phaseMs));
const before = await memory();

let peak = 0;
const attacking = attack();
const watching = setInterval(() => {
  if (deaths === 0) peak = Math.max(peak, residentNow());
}, 1_000);
const attacked = await stream(attacking);
const counts = await attacking;
clearInterval(watching);
await wait(settleMs);
const after = await stream(wait(phaseMs));
let left = await memory();
const returning = performance.now();
while (left > maxMemoryGrowth * before && performance.now() - returning < returnMs) {
  await wait(2_000);
  left = Math.min(left, await memory());
}

gateway.kill('SIGKILL');
upstream.closeAllConnections();
upstream.close();

const limitMs = maxSlowdown * Math.max(quiet.p99, leastQuietP99Ms);
const failed = quiet.failed + attacked.failed + after.failed;
const phase = (name: string, { p50, p99, answers, failed: lost }: Phase): string =>
  `${name.padEnd(13)} p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${answers} streams, ${lost} failed\n`;
process.stdout.write(
  `${connections} hostile connections, up to ${atATime} at a time and 100 new ones a second (seed ${seed})\n` +
    Object.entries(counts)
      .map(([name, count]) => `  ${String(count).padStart(4)} ${name}\n`)
      .join('') +
    phase('quiet', quiet) +
    phase('under attack', attacked) +
    phase('after', after) +
    `p99 may be ${limitMs.toFixed(0)} ms: ${maxSlowdown} x the quiet one, which counts as ${leastQuietP99Ms} ms at the least\n` +
    `RSS before ${before.toFixed(0)}, peak ${peak.toFixed(0)}, after ${left.toFixed(0)} MiB; deaths ${deaths}\n`,
);
const made = Object.values(counts).reduce((sum, count) => sum + count, 0);
const isGood =
  made >= connections &&
  deaths === 0 &&
  failed === 0 &&
  attacked.p99 <= limitMs &&
  left <= maxMemoryGrowth * before;
process.exit(isGood ? 0 : 1);
