import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { connectionOf } from './connections/connection.ts';

/** A request whose body a parser of the surrounding app may have read already. */
type MaybeParsed = IncomingMessage & { readonly body?: unknown };

/** Requests whose clients wait for `100 Continue` before they send the body. */
const awaitingContinue = new WeakSet<IncomingMessage>();

/** Notes that a client expects `100 Continue`, which is sent when its key is accepted and its body is read. */
export function holdContinue(request: IncomingMessage): void {
  awaitingContinue.add(request);
}

/** Reads a body of at most `maxBytes` with a JSON content type, as unparsed bytes. */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<Uint8Array | Refusal> {
  const fault = contentFault(request) ?? lengthFault(request, maxBytes);
  if (fault !== null) return fault;
  if (request.readableEnded) return takeParsed(request, maxBytes);
  if (request.destroyed) return incomplete();
  startBody(request, response);
  return readAll(request, maxBytes);
}

/** Sends `100 Continue` if the client expects it, and starts the time limit of the body. */
export function startBody(request: IncomingMessage, response: ServerResponse): void {
  connectionOf(request.socket)?.startBody(request);
  if (awaitingContinue.delete(request)) response.writeContinue();
}

/** Whether the content length exceeds the limit, so that the body is not read and the connection is closed. */
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

/** The refusal of a body that is larger than the limit. */
export function tooLarge(maxBytes: number): Refusal {
  return refuse(
    'request_too_large',
    `The request body is larger than ${maxBytes} bytes. Shorten the history.`,
  );
}

/** Of a body whose source fails: late ones are refused by their connection. */
function incomplete(): Refusal {
  return refuse('invalid_json', 'The request body broke off before its end.');
}

/** Turns a body that a parser of the surrounding app has read back into bytes. */
function takeParsed(request: MaybeParsed, maxBytes: number): Uint8Array | Refusal {
  const { body } = request;
  if (body === undefined)
    return refuse(
      'server_error',
      'Another middleware consumed the request body. Mount the gateway before it.',
    );
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
    request.on('close', () => resolve(incomplete()));
    request.on('error', () => {});
  });
}
