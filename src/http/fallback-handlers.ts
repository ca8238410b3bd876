import type { IncomingMessage } from 'node:http';
import { refuse } from '../shared/errors.ts';
import { StorageError, storageUnavailable } from '../domain/storage-refusal.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { sendRefusal } from './answers/respond.ts';
import type { Request, RequestHandler, Response } from './router.ts';

/** How much of a method an error message quotes, in characters. */
const maxQuotedMethod = 16;

/** Answers 405 on a known path, for every method that the path does not have. */
export function methodNotAllowed(allowed: string): RequestHandler {
  return (request, response) => {
    const message = `${shortenMethod(request)} is not allowed on this path: use ${allowed}.`;
    sendRefusal(response, refuse('method_not_allowed', message), { allow: allowed });
  };
}

/** Answers an error that a route threw, or hands it on. */
export type AnswerFault = (
  error: unknown,
  request: IncomingMessage,
  response: Response,
  next: (error?: unknown) => void,
) => void;

/** Answers an error that a route threw: a path that can't be decoded, a storage error, or a fault of the gateway. */
export function refuseFaults(onFault: ReportFault): AnswerFault {
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

/** The method of a request, as an error message quotes it. */
export function shortenMethod({ method }: Request): string {
  return method.slice(0, maxQuotedMethod);
}
