import type { Agent, IncomingMessage } from 'node:http';
import { readVariable } from '../config/environment.ts';

/** The variable that names a proxy for the requests of commands. */
const proxyVariable = 'TEXTGATE_COMMAND_PROXY';

/** A request of a command. */
export interface CommandRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Ends the request and its answer. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a request to a gateway; resolves with its answer when it begins, rejects with the error of its connection. No redirect
 * is followed. All commands call gateways by this alone: with NODE_USE_ENV_PROXY=1, `fetch` and the global agents of Node
 * give a request to the proxy of the environment, and with it the admin token or a client's key.
 */
export async function sendRequest(
  url: string,
  { method = 'GET', headers = {}, body, signal }: CommandRequest = {},
): Promise<IncomingMessage> {
  // Not imported: that would load Node's own fetch, too.
  const node = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  const agent = await agentOf(node);
  return new Promise((resolve, reject) => {
    node
      .request(url, { method, headers, agent, ...(signal === undefined ? {} : { signal }) }, resolve)
      .on('error', reject)
      .end(body);
  });
}

/** An agent without a proxy, or with that of the variable. Throws if its value is no address of one. */
async function agentOf(node: { readonly Agent: typeof Agent }): Promise<Agent | false> {
  const text = readVariable(process.env, proxyVariable);
  if (text === undefined) return false;
  const { readProxyUrl } = await import('../config/schema/proxy-values.ts');
  const proxy = readProxyUrl(text);
  if (typeof proxy === 'string') throw new Error(`${proxyVariable}: ${proxy}`);
  return new node.Agent({ proxyEnv: { HTTP_PROXY: proxy.href, HTTPS_PROXY: proxy.href } });
}

/** Whether a request failed on its way or was ended, rather than by a wrong setting. */
export function isConnectionFault(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && (error as { readonly code?: unknown }).code !== undefined;
}

/** Whether an answer has a status of success. */
export function isOk({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 299;
}

/** Reads a text up to a length in characters. One that is longer is read a little further, which its own length shows. */
export async function readStart(content: NodeJS.ReadableStream, maxChars: number): Promise<string> {
  let text = '';
  content.setEncoding('utf8');
  for await (const piece of content as AsyncIterable<string>) {
    text += piece;
    if (text.length > maxChars) break;
  }
  return text;
}
