import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

// As in a process of the gateway's own: small pieces of the prompts would keep large pools in memory.
Buffer.poolSize = 8_192;

const promptBytes = 200_000;
const openStreams = 60;

/** How often the prompts of all open streams may be in memory: once, for the count of an answer without usage. */
const mostCopies = 1.5;

/** The memory that is in use, in bytes. */
function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** An upstream that reads requests without keeping them, and never ends its streams; resolves with its URL. */
async function startEndless(): Promise<string> {
  const [first = '', text = ''] = chatFrames(['a']);
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200).write(first + text));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test(`an open stream has its prompt in memory at most ${mostCopies} times`, async () => {
  const gateway = await startGateway({
    upstreamUrl: await startEndless(),
    limits: { concurrency: 1_000, requestsPerMinute: 10_000 },
  });
  onTestFinished(() => gateway.close());
  const content = 'A prompt '.repeat(promptBytes / 9);
  const body = JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content }] });
  const request = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const open = async (count: number): Promise<Socket[]> => {
    const clients = Array.from({ length: count }, () => openRaw(gateway.url));
    for (const { socket } of clients) socket.write(request);
    await eventually('all have text', () => clients.every(({ text }) => text().includes('"content":"a"')));
    return clients.map(({ socket }) => socket);
  };
  await open(5);
  const before = usedBytes();
  const sockets = await open(openStreams);
  // On a busy machine the last answers' heads are still written, with what they hold of the requests.
  await expect.poll(() => (usedBytes() - before) / openStreams / promptBytes).toBeLessThan(mostCopies);
  for (const socket of sockets) socket.destroy();
});
