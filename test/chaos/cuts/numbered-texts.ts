import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { chatFrames } from '../../support/scripted-upstream.ts';

/** The deltas of the answer to a question. */
export function textsOf(question: number): readonly string[] {
  return Array.from({ length: 8 }, (_, at) => `part ${at} of ${question}, ${'é'.repeat(at)} `);
}

/** A provider whose answers depend on the number that is asked alone. */
export interface NumberedTexts {
  readonly url: string;
  /** How often each question was asked. */
  readonly calls: ReadonlyMap<number, number>;
  /** The questions that were answered twice at a time. */
  readonly doubled: ReadonlySet<number>;
  close(): void;
}

export async function startNumberedTexts(): Promise<NumberedTexts> {
  const calls = new Map<number, number>();
  const running = new Set<number>();
  const doubled = new Set<number>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { messages, stream } = JSON.parse(Buffer.concat(chunks).toString()) as {
        messages: { content: string }[];
        stream: boolean;
      };
      const question = Number(messages.at(-1)?.content);
      calls.set(question, (calls.get(question) ?? 0) + 1);
      if (running.has(question)) doubled.add(question);
      running.add(question);
      response.on('close', () => running.delete(question));
      void answer(response, question, stream);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    doubled,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Answers as providers do, bit by bit: a connection may break in the middle. */
async function answer(response: ServerResponse, question: number, stream: boolean): Promise<void> {
  const texts = textsOf(question);
  await wait(question % 5);
  if (!stream) {
    const message = { role: 'assistant', content: texts.join('') };
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage }),
    );
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of chatFrames(texts)) {
    response.write(frame);
    if (question % 2 === 0) await wait(1);
  }
  response.end();
}
