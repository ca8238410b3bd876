import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { eventually } from './eventually.ts';
import { chatFrames } from './scripted-upstream.ts';
import type { Script } from './scripted-upstream.ts';

/** What a client has to know of a gateway. */
interface Addressed {
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
}

const atATime = 100;

const words = chatFrames(Array.from({ length: 20 }, (_, index) => `word ${index} `));

/** Sends twenty words, each when the one before has been taken, and in a turn of its own: so clients can leave between them. */
export const sayWords: Script = async (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of words) {
    if (response.destroyed) return;
    await new Promise<void>((resolve) => response.write(frame, () => resolve()));
    await setImmediate();
  }
  response.end();
};

const paths = [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ['/v1/responses', { input: 'x' }],
] as const;

/** The bytes of a request. */
export function requestBytes({ key }: Addressed, endpoint: number, stream: boolean): string {
  const [path, text] = paths[endpoint % paths.length] ?? paths[0];
  const body = JSON.stringify({ model: 'small', stream, ...text });
  return (
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** A connection to the gateway, whose errors are of no interest. */
export function openSocket(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on('error', () => {});
}

/** One client, which disconnects within its request, after some bytes of the answer, or never. */
async function leave(gateway: Addressed, random: () => number): Promise<void> {
  const socket = openSocket(gateway.url);
  const closed = once(socket, 'close');
  await once(socket, 'connect').catch(() => {});
  const stream = random() < 0.8;
  const bytes = requestBytes(gateway, Math.floor(random() * 2), stream);
  const moment = random();
  const leaving = (): void => void (random() < 0.5 ? socket.destroy() : socket.resetAndDestroy());
  if (moment < 0.2) socket.write(bytes.slice(0, Math.floor(random() * bytes.length)), leaving);
  else if (moment < 0.4) socket.write(bytes, leaving);
  else {
    let patience = stream ? Math.floor(random() * 4_000) : 0;
    socket.on('data', (part) => {
      patience -= part.length;
      if (patience <= 0 || part.includes('[DONE]') || part.includes('response.completed')) leaving();
    });
    socket.write(bytes);
  }
  await closed;
}

/** Has clients leave, a hundred at a time; resolves when no request is in progress. */
export async function leaveMany(gateway: Addressed, count: number, random: () => number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await leave(gateway, random);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  await eventually('no request is in progress', async () => {
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    const counts = [...text.matchAll(/^textgate_requests_in_flight\{.*\} (\d+)$/gm)];
    return counts.every(([, inFlight]) => inFlight === '0');
  });
}
