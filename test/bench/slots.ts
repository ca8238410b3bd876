import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import { countOption, readScript } from '../support/script-options.ts';

/**
 * Measures how long after the upstream's connection has closed the slot of a request is free, whose client left a stream one
 * word before its end, without usage: the gateway counts its text. Cold, each time in a process that has counted nothing
 * before, and warm. A further request of the same key, which may have one in progress, waits for the slot meanwhile: the time
 * until it is sent upstream is measured.
 */
const { times } = readScript({
  name: 'bench slots',
  options: { times: countOption('measurements, cold and warm', 50) },
});

/** The words of the answer, of a token each. */
const words = 8_000;

/** Requests before the first measurement, whose upstream reports usage: nothing is counted for them. */
const warmUps = 20;

/** How long the further request has to arrive and to wait, in milliseconds. */
const settleMs = 50;

const body = JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] });
const long = chatFrames(Array.from({ length: words }, () => ' yes')).slice(0, -3);
const short = chatFrames(['x']);

/** Called when the connection of the long answer has closed, and when a further request has arrived. */
let closed = (): void => {};
let arrived = (): void => {};
let isLong = true;
const upstream = createServer((request, response) => {
  request.resume().on('end', () => {
    if (!isLong) {
      arrived();
      return void sendStream(response, short).end();
    }
    response.on('close', () => closed());
    sendStream(response, long);
  });
});
upstream.listen(0, '127.0.0.1');
await once(upstream, 'listening');
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;

interface Gateway {
  readonly url: string;
  readonly key: string;
  readonly stop: () => Promise<void>;
}

async function start(): Promise<Gateway> {
  const file = join(import.meta.dirname, '..', 'support', 'forked-gateway-child.ts');
  const child = fork(file, [upstreamUrl, '1', '30s']);
  const [{ url, key }] = (await once(child, 'message')) as [Pick<Gateway, 'url' | 'key'>];
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  isLong = false;
  for (let at = 0; at < warmUps; at++) await (await ask({ url, key })).text();
  return { url, key, stop };
}

function ask(
  { url, key }: Pick<Gateway, 'url' | 'key'>,
  signal: AbortSignal | null = null,
): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, signal });
}

/** Leaves a stream at its last word; resolves with the time until the next request is sent upstream, in milliseconds. */
async function measure(gateway: Gateway): Promise<number> {
  isLong = true;
  const { promise: closing, resolve: close } = Promise.withResolvers<number>();
  closed = () => close(performance.now());
  const leaving = new AbortController();
  const answer = await ask(gateway, leaving.signal);
  // Not by an iterator, which would close the connection at its end.
  const reader = answer.body?.getReader();
  for (let seen = 0; seen < words - 1;) {
    const { value = new Uint8Array() } = (await reader?.read()) ?? {};
    seen += Buffer.from(value).toString().split(' yes').length - 1;
  }
  isLong = false;
  let sentMs = 0;
  arrived = () => (sentMs = performance.now());
  // It waits for the slot.
  const next = ask(gateway);
  await setTimeout(settleMs);
  leaving.abort();
  const closedMs = await closing;
  await (await next).text();
  return sentMs - closedMs;
}

function show(name: string, found: readonly number[]): void {
  const sorted = found.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1);
  const figures = `p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, at most ${at(1)} ms`;
  process.stdout.write(`${name}: free after ${figures} (${found.length} times)\n`);
}

const cold: number[] = [];
for (let at = 0; at < times; at++) {
  const gateway = await start();
  cold.push(await measure(gateway));
  await gateway.stop();
}
show('cold', cold);

const gateway = await start();
await measure(gateway);
const warm: number[] = [];
for (let at = 0; at < times; at++) warm.push(await measure(gateway));
show('warm', warm);
await gateway.stop();
upstream.close();
upstream.closeAllConnections();
