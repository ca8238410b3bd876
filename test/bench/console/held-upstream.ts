import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How often every stream gets a word, in milliseconds: less than the gateway waits for one. */
const everyMs = 10_000;

/** How many streams are opened at a time. */
const atOnce = 50;

const frame = `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n`;

/** An upstream whose streams have no end. */
export interface HeldUpstream {
  readonly url: string;
  close(): void;
}

/** Starts an upstream that answers everything with a stream that stays open. */
export async function startHeldUpstream(): Promise<HeldUpstream> {
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    request.resume();
    open.add(response.on('close', () => open.delete(response)));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frame);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const timer = setInterval(() => {
    for (const response of open) response.write(frame);
  }, everyMs);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close() {
      clearInterval(timer);
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Opens so many streams of the model `held`, each with the next secret, and resolves when all of them have text. */
export async function openStreams(
  url: string,
  count: number,
  secretOf: (number: number) => string,
): Promise<{ readonly lost: () => number; readonly close: () => void }> {
  const leaving = new AbortController();
  let lost = 0;
  const open = async (number: number): Promise<void> => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretOf(number)}`, 'content-type': 'application/json' },
      body: '{"model":"held","stream":true,"messages":[{"role":"user","content":"x"}]}',
      signal: leaving.signal,
    });
    const reader = response.body?.getReader();
    if (response.status !== 200 || reader === undefined) throw new Error(`status ${response.status}`);
    await reader.read();
    void drain(reader).then(() => (lost += leaving.signal.aborted ? 0 : 1));
  };
  for (let begun = 0; begun < count; begun += atOnce)
    await Promise.all(
      Array.from({ length: Math.min(atOnce, count - begun) }, (_none, at) => open(begun + at)),
    );
  return { lost: () => lost, close: () => leaving.abort() };
}

/** Reads a stream until either side ends it. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // It was cut off: the caller counts it, unless it did so itself.
  }
}
