import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { residentMib } from './resident-memory.ts';
import { servedModel, serveConfig } from './served-process.ts';

/**
 * Clients that open a stream and stop reading it, before an upstream that sends without end. What each costs in memory
 * beyond a client that reads must stay in bounds, all of them must be ended and settled as clients that disconnected, and
 * the memory must be freed afterwards. `npm run chaos readers -- --clients 200 --seed 1`
 */

const {
  clients,
  seconds,
  seed: given,
} = readScript({
  name: 'chaos readers',
  options: {
    clients: countOption('clients that do not read', 200),
    seconds: countOption('how long after the last one the memory is compared', 60),
    seed: seedOption(null),
  },
});

/** How long the reading clients stay, and each of the others at most: those that stay longest are ended by the gateway. */
const readingMs = 15_000;
const unread = { setting: '10s', ms: 10_000 };
const longestStayMs = 2 * unread.ms;
/** Above a megabyte that was sent on a connection, the gateway waits four times as long. */
const overMs = 5 * unread.ms;
/** The pause between two parts of a stream that is read, in milliseconds. In the end it is as long as one that is not read. */
const paceMs = 100;
const framesPerPart = 20;
const maxBytesPerClient = 256 * 1_024;
const maxMemoryGrowth = 1.2;

const { random, seed } = randomNumbers(given);
const frame = chatFrames(['some words of an answer that never ends '.repeat(4)])[0] ?? '';
const part = frame.repeat(framesPerPart);
/** What the upstream sends at once where it sends as fast as it can. */
const flood = frame.repeat(200);

/** Whether the upstream waits between two events, which all streams do that are read. */
let isPaced = true;
const upstream = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    void (isPaced ? sendSlowly(response) : sendWithoutEnd(response));
  });
});
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));

async function sendSlowly(response: ServerResponse): Promise<void> {
  for (; !response.destroyed; await wait(paceMs)) response.write(part);
}

function sendWithoutEnd(response: ServerResponse): void {
  const send = (): void => {
    while (!response.destroyed && response.write(flood));
  };
  response.on('drain', send);
  send();
}

const folder = mkdtempSync(join(tmpdir(), 'textgate-readers-'));
const { port } = upstream.address() as AddressInfo;
const served = await serveConfig({
  folder,
  config: {
    server: { port: 0, timeouts: { unread: unread.setting } },
    limits: { concurrency: 100, requestsPerMinute: 10_000_000 },
    ...servedModel(`http://127.0.0.1:${port}/v1`),
  },
});
const gatewayPort = Number(new URL(served.url).port);
const keys = await Promise.all(
  Array.from({ length: Math.ceil(clients / 50) }, (_, index) =>
    served.createKey(`reader-${index}`, '1000000'),
  ),
);

/** The gateway's resident memory in bytes. */
const resident = (): number => residentMib(served.child.pid) * 1_048_576;

/** The most resident memory while something runs. */
async function peakDuring(run: Promise<unknown>): Promise<number> {
  let peak = resident();
  const watching = setInterval(() => (peak = Math.max(peak, resident())), 250);
  await run;
  clearInterval(watching);
  return peak;
}

/** Opens a stream, in either protocol, whose first `bytes` are read. */
function open(index: number, bytes: number): Socket {
  const [path, question] =
    index % 2 === 0
      ? ['chat/completions', { messages: [{ role: 'user', content: 'x' }] }]
      : ['responses', { input: 'x' }];
  const body = JSON.stringify({ model: 'small', stream: true, ...question });
  const socket = connect({ port: gatewayPort, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.write(
    `POST /v1/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys[index % keys.length]}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  let left = bytes;
  socket.on('data', (chunk) => {
    left -= chunk.length;
    if (left <= 0) socket.pause();
  });
  return socket;
}

/** Opens this many streams; each reads as much and stays as long as it is told, in milliseconds. */
async function play(
  plan: (index: number) => { readonly bytes: number; readonly stayMs: number },
): Promise<void> {
  await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      const { bytes, stayMs } = plan(index);
      await wait(random() * 1_000);
      const socket = open(index, bytes);
      const closed = once(socket, 'close');
      await Promise.race([closed, wait(stayMs)]);
      socket.destroy();
    }),
  );
}

const mib = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`;
const kib = (bytes: number): string => `${(bytes / 1_024).toFixed(0)} KiB`;

const idle = resident();
// Twice: the first time, code is compiled and tables of the token counter are read.
const reading = () => play(() => ({ bytes: Infinity, stayMs: readingMs }));
const peakReading = await peakDuring(reading().then(reading));
await wait(seconds * 1_000);
const before = resident();

isPaced = false;
const peak = await peakDuring(
  play(() => ({ bytes: Math.floor(random() * 500_000), stayMs: longestStayMs * (0.2 + random()) })).then(() =>
    wait(overMs),
  ),
);
const inFlight = ((await served.ask('GET', '/in-flight')) as { data: readonly unknown[] }).data.length;
await wait(seconds * 1_000);
const after = resident();
const records = (await served.ask('GET', `/records?limit=${Math.min(clients, 1_000)}`)) as {
  data: readonly { readonly outcome: string | null }[];
};
const others = records.data.filter(({ outcome }) => outcome !== 'client_closed').length;
await served.end();
upstream.closeAllConnections();
upstream.close();
rmSync(folder, { recursive: true });

const perReading = Math.max(0, peakReading - idle) / clients;
const perUnread = Math.max(0, peak - before) / clients;
process.stdout.write(
  `${clients} clients that do not read (seed ${seed})\n` +
    `memory at the start ${mib(idle)}, with clients that read at most ${mib(peakReading)}\n` +
    `memory before ${mib(before)}, at most ${mib(peak)}, ${seconds} s afterwards ${mib(after)}\n` +
    `a client that reads takes ${kib(perReading)}, one that does not ${kib(perUnread)}\n` +
    `still running ${inFlight}, not settled as clients that disconnected ${others}\n`,
);
const isGood =
  perUnread - perReading <= maxBytesPerClient &&
  after <= maxMemoryGrowth * before &&
  inFlight === 0 &&
  others === 0;
process.exit(isGood ? 0 : 1);
