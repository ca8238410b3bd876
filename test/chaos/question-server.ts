import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a gateway asks a provider, in the protocol Chat Completions. */
export interface AskedQuestion {
  /** The path of the call. */
  readonly path: string;
  /** The last message. */
  readonly prompt: string;
  readonly stream: boolean;
}

/** A provider on loopback. */
export interface QuestionServer {
  /** Its address, without a path. */
  readonly origin: string;
  readonly close: () => void;
}

/** Starts a provider, whose answers are made by a function. */
export async function startQuestionServer(
  answer: (asked: AskedQuestion, response: ServerResponse) => void,
): Promise<QuestionServer> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { messages, stream } = JSON.parse(Buffer.concat(chunks).toString()) as {
        messages: { content: string }[];
        stream: boolean;
      };
      answer({ path: request.url ?? '', prompt: messages.at(-1)?.content ?? '', stream }, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
