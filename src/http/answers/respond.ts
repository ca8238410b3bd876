import type { OutgoingHttpHeaders } from 'node:http';
import { isRefusal, statusOf } from '../../shared/errors.ts';
import type { ErrorCode, Refusal } from '../../shared/errors.ts';
import { jsonType, writeRefusal } from '../../protocol/answer-writer.ts';
import { noStore, refusalHeaders } from './answer-headers.ts';
import { announceClose, lingerAfter, whenChunkIsRead } from '../connections/lingering-close.ts';
import type { Response } from '../router.ts';

/** Sends a whole body: every answer outside the pipeline goes out here. JSON, unless the headers name another type. */
export function sendBody(
  response: Response,
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): void {
  const length = Buffer.byteLength(body);
  send(
    response,
    status,
    { 'content-type': jsonType, 'content-length': length, ...noStore, ...headers },
    body,
  );
}

/** Sends a client to another place, which may be relative to the one that it asked for. */
export function sendRedirect(response: Response, status: 303 | 308, location: string): void {
  response.setHeader('location', location);
  sendBody(response, status, '', { 'content-type': 'text/plain' });
}

/** Sends an answer that has no body. */
export function sendNoContent(response: Response, headers: Readonly<Record<string, string>>): void {
  send(response, 204, { ...noStore, ...headers }, '');
}

/** Says that the client has the current version already. */
export function sendNotModified(response: Response, headers: Readonly<Record<string, string>>): void {
  send(response, 304, { ...headers }, '');
}

function send(
  response: Response,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Uint8Array,
): void {
  whenChunkIsRead(response, () => {
    announceClose(response);
    response.writeHead(status, headers);
    lingerAfter(response);
    response.end(body);
  });
}

/** Sends a page of a list as CSV, with the cursor of the next page in a header. */
export function sendCsv(response: Response, csv: string, next: string | null): void {
  sendBody(response, 200, csv, {
    'content-type': 'text/csv; charset=utf-8',
    ...(next === null ? {} : { 'x-textgate-next': next }),
  });
}

/** A signal that is raised when the client leaves, and when its answer has been sent. */
export function leaveSignalOf(response: Response): AbortSignal {
  const left = new AbortController();
  response.once('close', () => left.abort());
  // It may have left while its body was read.
  if (response.destroyed) left.abort();
  return left.signal;
}

/** The result of work that takes long, and that is ended when its client leaves: nothing is answered then. */
export async function workUntilLeft<Result>(
  response: Response,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | null> {
  const signal = leaveSignalOf(response);
  try {
    return await work(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    return null;
  }
}

/** Sends the result of a route: an object as JSON, or a refusal. */
export function sendAnswer(response: Response, status: number, answer: object | Refusal): void {
  if (isRefusal(answer)) sendRefusal(response, answer);
  else sendBody(response, status, JSON.stringify(answer));
}

/** The codes of the refusals that were sent. */
const refusals = new WeakMap<Response, ErrorCode>();

/** The code of the refusal that an answer is; `null` for every other answer. */
export function refusalOf(response: Response): ErrorCode | null {
  return refusals.get(response) ?? null;
}

/** Sends a refusal in OpenAI's error envelope. */
export function sendRefusal(
  response: Response,
  refusal: Refusal,
  headers: Readonly<Record<string, string>> = {},
): void {
  refusals.set(response, refusal.code);
  const all = { ...refusalHeaders(refusal), ...headers };
  sendBody(response, statusOf(refusal.code), writeRefusal(refusal), all);
}
