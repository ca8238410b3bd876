import express from 'express';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { request } from 'undici';

/**
 * The rewriter that anyone would write first: Express reads the request as JSON, undici sends it on, and every event of
 * the answer is parsed, rebuilt and written by itself. It has no keys, no limits, no money and no records, and no care
 * for anything that goes wrong. Arguments: the upstream's port, its own port, and, for the subject `ledger`, a file:
 * then it charges each answer in that file before the client sees its end, and still does nothing else of the above.
 */

interface Frame {
  readonly choices: readonly {
    readonly index: number;
    readonly delta?: { readonly role?: string; readonly content?: string };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Usage | null;
}

const [upstreamPort = '', port = '', ledgerFile] = process.argv.slice(2);
const url = `http://127.0.0.1:${upstreamPort}/v1/chat/completions`;

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

/** Resolves when the answer's charge is on the disk; without a ledger at once. */
const charge = ledgerFile === undefined ? (): null => null : openLedger(ledgerFile);

function openLedger(file: string): (id: string, model: string, usage: Usage) => Promise<void> {
  const posts = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const thread = new Worker(join(import.meta.dirname, 'child-ledger.ts'), { workerData: { file, posts } });
  const waiting: (() => void)[] = [];
  thread.on('message', (count: number) => {
    for (const resolve of waiting.splice(0, count)) resolve();
  });
  return async (id, model, { prompt_tokens: input, completion_tokens: output }) =>
    new Promise((resolve) => {
      waiting.push(resolve);
      thread.postMessage([id, model, input, output]);
      Atomics.add(posts, 0, 1);
      Atomics.notify(posts, 0);
    });
}

/** Splits text into the data of its events; what is not complete yet waits for the next read. */
function createParser(found: (data: string) => void) {
  let rest = '';
  return (text: string): void => {
    const events = (rest + text).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events)
      for (const line of event.split('\n')) if (line.startsWith('data: ')) found(line.slice(6));
  };
}

function rebuilt(frame: Frame, id: string, model: string): object {
  return {
    id,
    object: 'chat.completion.chunk',
    created: 1_763_800_000,
    model,
    choices: frame.choices.map(({ index, delta, finish_reason }) => ({
      index,
      delta: { ...delta },
      logprobs: null,
      finish_reason,
    })),
    usage: frame.usage ?? null,
  };
}

express()
  .use(express.json({ limit: '2mb' }))
  .post('/v1/chat/completions', async (incoming, response) => {
    const body = incoming.body as { readonly model: string; readonly stream?: boolean };
    const answer = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, model: 'simulated' }),
    });
    const id = `chatcmpl-${crypto.randomUUID()}`;
    if (body.stream !== true) {
      const whole = (await answer.body.json()) as { readonly usage: Usage };
      await charge(id, body.model, whole.usage);
      response.status(answer.statusCode).json({ ...whole, id, model: body.model });
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let usage: Usage = { prompt_tokens: 0, completion_tokens: 0 };
    const parse = createParser((data) => {
      if (data === '[DONE]') return;
      const frame = JSON.parse(data) as Frame;
      usage = frame.usage ?? usage;
      response.write(`data: ${JSON.stringify(rebuilt(frame, id, body.model))}\n\n`);
    });
    const decoder = new TextDecoder();
    for await (const bytes of answer.body as AsyncIterable<Uint8Array>)
      parse(decoder.decode(bytes, { stream: true }));
    await charge(id, body.model, usage);
    response.end('data: [DONE]\n\n');
  })
  .listen(Number(port), '127.0.0.1');
