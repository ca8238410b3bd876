import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { connectionOf } from './connection.ts';

/** A request that a body parser of the surrounding app may have read before us. */
type MaybeParsed = IncomingMessage & { readonly body?: unknown };

/** Requests that wait for our word before they send their body. */
const awaitingContinue = new WeakSet<IncomingMessage>();

/** Notes that a client wants a `100 Continue`, which it gets once its key is known and its body is wanted. */
export function holdContinue(request: IncomingMessage): void {
  awaitingContinue.add(request);
}

/** Reads a body of at most `maxBytes` that says it is JSON, as bytes: what they mean is for others to say. */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<Uint8Array | Refusal> {
  const fault = contentFault(request) ?? lengthFault(request, maxBytes);
  if (fault !== null) return fault;
  if (request.readableEnded) return takeParsed(request, maxBytes);
  if (request.destroyed) return cutOff();
  letBodyCome(request, response);
  return readAll(request, maxBytes);
}

/** Tells a client that waits for our word to send its body, and has its time for that begin. */
export function letBodyCome(request: IncomingMessage, response: ServerResponse): void {
  connectionOf(request.socket)?.wantBody(request);
  if (awaitingContinue.delete(request)) response.writeContinue();
}

/** Whether the body is larger than anybody will read, so that the connection can't be used again. */
export function isOversized(request: IncomingMessage, maxBytes: number): boolean {
  return Number(request.headers['content-length'] ?? 0) > maxBytes;
}

function contentFault({ headers }: IncomingMessage): Refusal | null {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^application\/([\w.-]+\+)?json$/.test(type))
    return refuse(
      'unsupported_content_type',
      `Unsupported content type${type === '' ? '' : ` '${type.slice(0, 64)}'`}: send the header 'Content-Type: application/json'.`,
    );
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return null;
  return refuse('unsupported_content_type', 'Compressed request bodies are not accepted: send plain JSON.');
}

function lengthFault(request: IncomingMessage, maxBytes: number): Refusal | null {
  return isOversized(request, maxBytes) ? tooLarge(maxBytes) : null;
}

/** A body that is larger than the limit. */
export function tooLarge(maxBytes: number): Refusal {
  return refuse(
    'request_too_large',
    `The request body is larger than ${maxBytes} bytes. Shorten the history.`,
  );
}

function cutOff(): Refusal {
  return refuse('request_timeout', 'The request body did not arrive whole.');
}

/** What a parser of the surrounding app has made of the body, back as bytes. */
function takeParsed(request: MaybeParsed, maxBytes: number): Uint8Array | Refusal {
  const { body } = request;
  if (body === undefined)
    return refuse('server_error', 'Middleware before the gateway has read the request body and kept it.');
  const bytes =
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return bytes.length > maxBytes ? tooLarge(maxBytes) : bytes;
}

function readAll(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | Refusal> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= maxBytes) return;
      chunks.length = 0;
      request.off('data', take);
      request.pause();
      resolve(tooLarge(maxBytes));
    };
    request.on('data', take);
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('close', () => resolve(cutOff()));
    request.on('error', () => {});
  });
}
