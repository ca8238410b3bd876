import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { stringify as writeQuery } from 'node:querystring';
import type { ParsedUrlQueryInput } from 'node:querystring';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { connectionOf } from './connections/connection.ts';

/** A request whose body a parser of the surrounding app may have read already. */
type MaybeParsed = IncomingMessage & { readonly body?: unknown };

const jsonType = /^application\/([\w.-]+\+)?json$/;
const formType = 'application/x-www-form-urlencoded';

/** Requests whose clients wait for `100 Continue` before they send the body. */
const awaitingContinue = new WeakSet<IncomingMessage>();

/** Notes that a client expects `100 Continue`, which is sent when its key is accepted and its body is read. */
export function holdContinue(request: IncomingMessage): void {
  awaitingContinue.add(request);
}

/** Reads a body of at most `maxBytes` with a JSON content type, as unparsed bytes; also that of a form with `takesForms`. */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  takesForms = false,
): Promise<Uint8Array | Refusal> {
  const fault = contentFault(request, takesForms) ?? sizeFault(request, maxBytes);
  if (fault !== null) return fault;
  const taken = takeReadBody(request, maxBytes);
  if (taken !== null) return taken;
  startBody(request, response);
  return takeArrived(request) ?? readAll(request, maxBytes);
}

/** Sends `100 Continue` if the client expects it, and starts the time limit of the body. */
export function startBody(request: IncomingMessage, response: ServerResponse): void {
  connectionOf(request.socket)?.startBody(request);
  if (awaitingContinue.delete(request)) response.writeContinue();
}

/** The refusal of a content length above the limit, so that the body is not read and the connection is closed. */
export function sizeFault({ headers }: IncomingMessage, maxBytes: number): Refusal | null {
  return Number(headers['content-length'] ?? 0) > maxBytes ? tooLarge(maxBytes) : null;
}

/** Whether the body is that of an HTML form. */
export function isForm({ headers }: IncomingMessage): boolean {
  return typeOf(headers) === formType;
}

function contentFault({ headers }: IncomingMessage, takesForms: boolean): Refusal | null {
  const type = typeOf(headers);
  if (!jsonType.test(type) && !(takesForms && type === formType))
    return refuse(
      'unsupported_content_type',
      `Unsupported content type${type === '' ? '' : ` '${type.slice(0, 64)}'`}: send the header 'Content-Type: application/json'.`,
    );
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return null;
  return refuse('unsupported_content_type', 'Compressed request bodies are not accepted: send plain JSON.');
}

/** The content type without its parameters, in lower case; empty without one. */
function typeOf(headers: IncomingHttpHeaders): string {
  const type = headers['content-type'] ?? '';
  return type === 'application/json' ? type : (type.split(';', 1)[0]?.trim().toLowerCase() ?? '');
}

/** The refusal of a body that is larger than the limit. */
export function tooLarge(maxBytes: number): Refusal {
  return refuse(
    'request_too_large',
    `The request body is larger than ${maxBytes} bytes. Shorten the history.`,
  );
}

/** The refusal of a body that breaks off before its end. */
export function incomplete(): Refusal {
  return refuse('invalid_json', 'The request body broke off before its end.');
}

/**
 * Takes a body that the surrounding app has read before the gateway, as bytes; `null` if it is still to be read. A refusal
 * if it can't be restored: without its body, a request would mean something else.
 */
export function takeReadBody(request: MaybeParsed, maxBytes: number): Uint8Array | Refusal | null {
  if (!request.readableEnded) return request.destroyed ? incomplete() : null;
  const bytes = writeBack(request) ?? (isAnnounced(request) ? null : Buffer.alloc(0));
  if (bytes === null)
    return refuse(
      'server_error',
      'Another middleware consumed the request body. Mount the gateway before it.',
    );
  return bytes.length > maxBytes ? tooLarge(maxBytes) : bytes;
}

/** Whether the head announces a body. */
function isAnnounced({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Turns what a parser has made of a body back into bytes; `null` if that is not possible without a loss. */
function writeBack({ body, headers }: MaybeParsed): Uint8Array | null {
  if (body === undefined || body instanceof Uint8Array) return body ?? null;
  if (typeof body === 'string') return Buffer.from(body);
  const type = typeOf(headers);
  if (jsonType.test(type)) return Buffer.from(JSON.stringify(body));
  return type === formType && isFlat(body) ? Buffer.from(writeQuery(body)) : null;
}

/** Whether a form has no nested fields, for which there are several notations. */
function isFlat(form: unknown): form is ParsedUrlQueryInput {
  return Object.values(form ?? {})
    .flat()
    .every((value) => typeof value === 'string');
}

/** The length of a body that arrived whole with its head, as most do, and is still to be read, in bytes; 0 of any other. */
export function arrivedBytes(request: IncomingMessage): number {
  if (!request.complete || request.readableFlowing !== null) return 0;
  const length = Number(request.headers['content-length'] ?? 0);
  return request.readableLength === length ? length : 0;
}

/** A body that has arrived; `null` if it is still to be read. */
function takeArrived(request: IncomingMessage): Buffer | null {
  const length = arrivedBytes(request);
  return length > 0 ? (request.read(length) as Buffer) : null;
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
    request.on('end', () => {
      const [first] = chunks;
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks));
      // The listeners live as long as the answer: the prompt must not.
      chunks.length = 0;
    });
    request.on('close', () => resolve(incomplete()));
    request.on('error', () => {});
  });
}
