import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { isRefusal, refuse, statusOf } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { StorageError, storageUnavailable } from '../domain/storage-refusal.ts';
import type { NextId } from '../domain/ports/clock.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { jsonType } from '../protocol/answer-writer.ts';
import { writeRefusal } from '../protocol/write-refusal.ts';
import { refusalHeaders } from './answer-headers.ts';
import { announceClose, lingerAfter, whenChunkIsRead } from './lingering-close.ts';
import type { UnreadWatch } from './unread-watch.ts';

/** Node warns of a leak above ten listeners; a passed-on answer has a few more of its own. */
const maxListeners = 20;

/**
 * The first handler of every request: gives it its id before anything can go wrong with it, forbids guessing the type of
 * its answer, and has the answer watched for a client that does not read it.
 */
export function prepareAnswers(nextId: NextId, watchUnread: UnreadWatch): RequestHandler {
  return (_request, response, next) => {
    if (response.locals['id'] === undefined) {
      const id = nextId();
      response.locals['id'] = id;
      response.setHeader('x-request-id', `req_${id}`);
      response.setHeader('x-content-type-options', 'nosniff');
      response.setMaxListeners(maxListeners);
      watchUnread(response);
    }
    next();
  };
}

/** The id that `prepareAnswers` gave. */
export function idOf(response: Response): string {
  return String(response.locals['id']);
}

/** Sends a whole body, as every answer outside an exchange is sent; JSON, unless the headers say otherwise. */
export function sendBody(
  response: Response,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const length = Buffer.byteLength(body);
  whenChunkIsRead(response, () => {
    announceClose(response);
    response.writeHead(status, { 'content-type': jsonType, 'content-length': length, ...headers });
    lingerAfter(response);
    response.end(body);
  });
}

/** Sends what a route has to say: an object, or a refusal. */
export function sendAnswer(response: Response, status: number, answer: object | Refusal): void {
  if (isRefusal(answer)) sendRefusal(response, answer);
  else sendBody(response, status, JSON.stringify(answer));
}

/** Sends a refusal in the OpenAI envelope. */
export function sendRefusal(
  response: Response,
  refusal: Refusal,
  headers: Readonly<Record<string, string>> = {},
): void {
  const all = { ...refusalHeaders(refusal), ...headers };
  sendBody(response, statusOf(refusal.code), writeRefusal(refusal), all);
}

/** Answers a known path asked with a method that it does not have. */
export function methodNotAllowed(allowed: string): RequestHandler {
  return (request, response) => {
    const message = `${shownMethod(request)} is not allowed on this path: use ${allowed}.`;
    sendRefusal(response, refuse('method_not_allowed', message), { allow: allowed });
  };
}

/** Paths that lack what every path of ours begins with: the commonest slip in a base address. */
const knownBelowV1 = /^\/(chat\/completions|responses|models|key)(\/|$)/;

/** Answers a path that does not exist. */
export const unknownUrl: RequestHandler = (request, response) => {
  const path = shownPath(request);
  const advice = knownBelowV1.test(path) ? `Did you mean /v1${path}?` : 'Check the path for typos.';
  const message = `Unknown request URL: ${shownMethod(request)} ${path}. ${advice}`;
  sendRefusal(response, refuse('unknown_url', message));
};

/** Answers what went wrong inside a route: a path that can't be decoded, or else a fault of our own. */
export function refuseFaults(onFault: ReportFault): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) return next(error);
    if (error instanceof URIError)
      return sendRefusal(response, refuse('unknown_url', 'The path of this request cannot be decoded.'));
    onFault('a request could not be answered', error);
    if (error instanceof StorageError) return sendRefusal(response, storageUnavailable());
    const message = 'The server had an error while processing the request.';
    sendRefusal(response, refuse('server_error', message));
  };
}

function shownMethod({ method }: Request): string {
  return method.slice(0, 16);
}

/** Without the query, which may hold what should not be repeated. */
function shownPath({ originalUrl }: Request): string {
  return (originalUrl.split('?', 1)[0] ?? '').slice(0, 128);
}
