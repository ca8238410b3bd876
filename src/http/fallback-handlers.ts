import { refuse } from '../shared/errors.ts';
import { StorageError, storageUnavailable } from '../domain/storage-refusal.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { sendRefusal } from './answers/respond.ts';
import { isReading } from './pages/own-pages.ts';
import type { ErrorRequestHandler, Request, RequestHandler } from './router.ts';

/** How much of a method an error message quotes, in characters. */
const maxQuotedMethod = 16;

/** Answers 405 on a known path, for every method that the path does not have. */
export function methodNotAllowed(allowed: string): RequestHandler {
  return (request, response) => {
    const message = `${shortenMethod(request)} is not allowed on this path: use ${allowed}.`;
    sendRefusal(response, refuse('method_not_allowed', message), { allow: allowed });
  };
}

const refuseChanges = methodNotAllowed('GET, HEAD');

/** Answers 405 for every method that does not read; `next` has the others. */
export const readingAlone: RequestHandler = (request, response, next) => {
  if (isReading(request)) next();
  else refuseChanges(request, response, next);
};

/** Answers an error that a route threw: a path that can't be decoded, a storage error, or a fault of the gateway. */
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

/** The method of a request, as an error message quotes it. */
export function shortenMethod({ method }: Request): string {
  return method.slice(0, maxQuotedMethod);
}
