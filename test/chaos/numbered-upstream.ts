import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** Questions of one key: the number of a key is what its questions have before these digits. */
export const questionsPerKey = 1_000_000;

/** How many questions in a row have different counts of input tokens, so that a charge tells its question. */
export const countedApart = 100_000;

/** Into how many pieces of text a streamed answer is cut. */
const pieces = 4;

/** The number of the key to which a question belongs. */
export function keyOf(question: number): number {
  return Math.floor(question / questionsPerKey);
}

/** Tokens that the upstream counted for one question. */
export interface ServedTokens {
  readonly input: number;
  readonly output: number;
}

/** What the upstream noted of one question; times are on the monotonic clock of this process, in milliseconds. */
export interface ServedQuestion extends ServedTokens {
  readonly arrivedMs: number;
  /** When its answer was given whole, or its connection was gone; `null` while it runs. */
  readonly endedMs: number | null;
  readonly isWhole: boolean;
}

/** A provider whose questions are numbers: it notes what it served of each. */
export interface NumberedUpstream {
  /** The base URL, with the version. */
  readonly url: string;
  readonly served: ReadonlyMap<number, ServedQuestion>;
  /** How many questions of a key run now. */
  running(key: number): number;
  /** The most that ran at once. */
  mostAtOnce(key: number): number;
  close(): void;
}

interface UpstreamOptions {
  /** How long the answer to a question takes, in milliseconds; a promise holds it back. All at once without it. */
  readonly answerMs?: (number: number) => number | Promise<number>;
}

/** Starts one on a free loopback port. A streamed answer comes in pieces, a whole one when its time is over. */
export async function startNumberedUpstream({
  answerMs = () => 0,
}: UpstreamOptions = {}): Promise<NumberedUpstream> {
  const served = new Map<number, ServedQuestion>();
  const running = new Map<number, number>();
  const most = new Map<number, number>();

  const begin = (number: number, response: ServerResponse): { tokens: ServedTokens; finish: () => void } => {
    const tokens = { input: 5 + (number % countedApart), output: 3 + (number % 11) };
    const arrivedMs = performance.now();
    served.set(number, { ...tokens, arrivedMs, endedMs: null, isWhole: false });
    const key = keyOf(number);
    const now = (running.get(key) ?? 0) + 1;
    running.set(key, now);
    most.set(key, Math.max(most.get(key) ?? 0, now));
    let isEnded = false;
    const end = (isWhole: boolean): void => {
      if (isEnded) return;
      isEnded = true;
      running.set(key, (running.get(key) ?? 0) - 1);
      served.set(number, { ...tokens, arrivedMs, endedMs: performance.now(), isWhole });
    };
    response.on('close', () => end(false));
    // Before the last bytes go out: the slot of a request that has read them may be given to the next one at once.
    return { tokens, finish: () => end(!response.destroyed) };
  };

  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const number = Number(/"content":"(\d+)"/.exec(body)?.[1]);
      const { tokens, finish } = begin(number, response);
      const isStream = /"stream":true/.test(body);
      const send = isStream ? sendStream : sendWhole;
      void Promise.resolve(answerMs(number)).then((durationMs) => send(response, tokens, durationMs, finish));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    served,
    running: (key) => running.get(key) ?? 0,
    mostAtOnce: (key) => most.get(key) ?? 0,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** An answer whose gateway is gone does not keep the process alive. */
const notAlone = { ref: false };

type Send = (
  response: ServerResponse,
  tokens: ServedTokens,
  durationMs: number,
  finish: () => void,
) => Promise<void>;

const sendStream: Send = async (response, tokens, durationMs, finish) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const early = durationMs > 0 ? pieces : 0;
  for (let piece = 0; piece < early; piece++) {
    response.write(eventOf({ choices: [{ index: 0, delta: { content: 'a ' } }] }));
    await wait(durationMs / pieces, undefined, notAlone);
    if (response.destroyed) return;
  }
  finish();
  response.end(
    eventOf({ choices: [{ index: 0, delta: { content: 'b' }, finish_reason: 'stop' }] }) +
      eventOf({ choices: [], usage: usageOf(tokens) }) +
      'data: [DONE]\n\n',
  );
};

const sendWhole: Send = async (response, tokens, durationMs, finish) => {
  if (durationMs > 0) await wait(durationMs, undefined, notAlone);
  if (response.destroyed) return;
  finish();
  response.writeHead(200, { 'content-type': 'application/json' });
  const choices = [{ index: 0, message: { role: 'assistant', content: 'a b' }, finish_reason: 'stop' }];
  response.end(JSON.stringify({ object: 'chat.completion', choices, usage: usageOf(tokens) }));
};

function eventOf(frame: object): string {
  return `data: ${JSON.stringify(frame)}\n\n`;
}

function usageOf({ input, output }: ServedTokens): object {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
