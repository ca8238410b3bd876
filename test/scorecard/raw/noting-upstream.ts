import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An upstream that gives every request the same answer, and notes what it got. */
export interface NotingUpstream {
  /** The base URL, with the version. */
  readonly url: string;
  /** What it got, in order. */
  readonly seen: readonly { readonly path: string; readonly body: string }[];
  close(): void;
}

const answer = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

/** Starts one on a free loopback port. */
export async function startNotingUpstream(): Promise<NotingUpstream> {
  const seen: { path: string; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString('latin1')));
    request.on('end', () => {
      seen.push({ path: request.url ?? '', body });
      response.setHeader('content-type', 'application/json').end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A path that is passed on to it, for a gateway's config. */
export const passedOn = { passthrough: [{ path: '/tokenize', upstream: 'numbered', free: true }] };
