import { createServer } from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { plant } from './canaries.ts';

/** A request as the upstream received it. */
interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What a provider does with a request. */
export type Script = (response: ServerResponse, request: SeenRequest) => void | Promise<void>;

/** A provider on loopback that runs a script of the test. */
export interface ScriptedUpstream {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** Calls that the gateway cut off before their answer was complete. */
  readonly aborted: number;
  /** Calls whose answer has not ended. */
  readonly running: number;
  /** Open connections. */
  connections(): Promise<number>;
  /** Sets the script for all further requests. */
  play(script: Script): void;
  close(): Promise<void>;
}

export async function startUpstream(): Promise<ScriptedUpstream> {
  const seen: SeenRequest[] = [];
  let aborted = 0;
  let running = 0;
  let script: Script = (response) => void response.writeHead(500).end();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    running++;
    response.on('close', () => {
      running--;
      if (!response.writableFinished) aborted++;
    });
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const { method = '', url = '', headers } = request;
      seen.push({ method, path: url, headers, body });
      void script(response, { method, path: url, headers, body });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    seen,
    get aborted() {
      return aborted;
    },
    get running() {
      return running;
    },
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      ),
    play: (next) => void (script = next),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The usage that the scripted answers report. */
const scriptedUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** The frames of a Chat Completions stream with the deltas `texts`, each frame one `data:` event. */
export function chatFrames(
  texts: readonly string[],
  finishReason = 'stop',
  usage: object = scriptedUsage,
): string[] {
  plant(...texts);
  const chunk = (choices: unknown[], extra = {}) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...extra })}\n\n`;
  const choice = (delta: object, reason: string | null = null) => [
    { index: 0, delta, finish_reason: reason },
  ];
  return [
    chunk(choice({ role: 'assistant', content: '' })),
    ...texts.map((content) => chunk(choice({ content }))),
    chunk(choice({}, finishReason)),
    chunk([], { usage }),
    'data: [DONE]\n\n',
  ];
}

/** A whole Chat Completions answer. */
function chatBody(content: string, finishReason = 'stop'): string {
  plant(content);
  return JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: finishReason }],
    usage: scriptedUsage,
  });
}

/** Answers a stream request with frames and a sync request with a whole body of the same text. */
export function sayTexts(texts: readonly string[], finishReason = 'stop'): Script {
  return (response, request) => {
    const { stream } = JSON.parse(request.body) as { stream: boolean };
    if (stream) sendStream(response, chatFrames(texts, finishReason)).end();
    else sendJson(response, 200, chatBody(texts.join(''), finishReason));
  };
}

/** Sends the head of an event stream and some frames, and leaves it open. */
export function sendStream(response: ServerResponse, frames: readonly string[]): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(frames.join(''));
  return response;
}

export function sendJson(response: ServerResponse, status: number, body: string, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body);
}

/** Ends a connection before the body is whole: politely (`fin`), or not (`rst`). */
export function cut(response: ServerResponse, how: 'fin' | 'rst'): void {
  if (how === 'fin') response.socket?.end();
  else response.socket?.resetAndDestroy();
}
