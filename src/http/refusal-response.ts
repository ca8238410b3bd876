import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { refuse, statusOf } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { NextId, ReportFault } from '../domain/ports.ts';
import { refusalBody, refusalHeaders } from '../protocol/write-refusal.ts';
import { jsonType } from '../protocol/answer-writer.ts';

/** Sends a JSON body with a request id, as every answer outside an exchange is sent. */
export function sendJson(
  response: Response,
  status: number,
  body: string,
  nextId: NextId,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'content-type': jsonType,
    'x-request-id': `req_${nextId()}`,
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

/** Sends a refusal in the OpenAI envelope. */
export function sendRefusal(
  response: Response,
  refusal: Refusal,
  nextId: NextId,
  headers: Readonly<Record<string, string>> = {},
): void {
  const all = { ...refusalHeaders(refusal), ...headers };
  sendJson(response, statusOf(refusal.refusal), refusalBody(refusal), nextId, all);
}

/** Answers a known path asked with a method that it does not have. */
export function methodNotAllowed(allowed: string, nextId: NextId): RequestHandler {
  return (request, response) =>
    sendRefusal(
      response,
      refuse('method_not_allowed', `${shownMethod(request)} is not allowed on this path: use ${allowed}.`),
      nextId,
      { allow: allowed },
    );
}

/** Answers a path that does not exist. */
export function unknownUrl(nextId: NextId): RequestHandler {
  return (request, response) =>
    sendRefusal(
      response,
      refuse(
        'unknown_url',
        `Unknown request URL: ${shownMethod(request)} ${shownPath(request)}. Check the path for typos.`,
      ),
      nextId,
    );
}

/** Answers what went wrong inside a route: a path that can't be decoded, or else a fault of our own. */
export function refuseFaults(onFault: ReportFault, nextId: NextId): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) return next(error);
    if (error instanceof URIError)
      return sendRefusal(
        response,
        refuse('unknown_url', 'The path of this request cannot be decoded.'),
        nextId,
      );
    onFault('a request could not be answered', error);
    const message = 'The server had an error while processing the request.';
    sendRefusal(response, refuse('server_error', message), nextId);
  };
}

function shownMethod({ method }: Request): string {
  return method.slice(0, 16);
}

/** Without the query, which may hold what should not be repeated. */
function shownPath({ originalUrl }: Request): string {
  return (originalUrl.split('?', 1)[0] ?? '').slice(0, 128);
}
