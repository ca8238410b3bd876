import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Tokens that the upstream counted for one question. */
export interface ServedTokens {
  readonly input: number;
  readonly output: number;
}

/** A provider whose questions are numbers: it records its token counts by question. */
export interface NumberedUpstream {
  /** The base URL, with the version. */
  readonly url: string;
  readonly served: ReadonlyMap<number, ServedTokens>;
  close(): void;
}

/** Starts one on a free loopback port. It answers every question with a stream and its usage. */
export async function startNumberedUpstream(): Promise<NumberedUpstream> {
  const served = new Map<number, ServedTokens>();
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const number = Number(/"content":"(\d+)"/.exec(body)?.[1]);
      const tokens = { input: 5 + (number % 7), output: 3 + (number % 11) };
      served.set(number, tokens);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(streamOf(tokens));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    served,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function streamOf({ input, output }: ServedTokens): string {
  const frames = [
    { choices: [{ index: 0, delta: { content: 'a ' } }] },
    { choices: [{ index: 0, delta: { content: 'b' }, finish_reason: 'stop' }] },
    {
      choices: [],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    },
  ];
  return `${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`;
}
