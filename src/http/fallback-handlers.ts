import { refuse } from '../shared/errors.ts';
import { isWellFormed } from '../domain/api-key.ts';
import { StorageError, storageUnavailable } from '../domain/storage-refusal.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { readBearer } from '../pipeline/authenticate.ts';
import { sendRefusal } from './respond.ts';
import type { ErrorRequestHandler, Request, RequestHandler } from './router.ts';

/** How much of a method and of a path an error message quotes, in characters. */
const maxQuotedMethod = 16;
const maxQuotedPath = 128;

/** Answers 405 on a known path, for every method that the path does not have. */
export function methodNotAllowed(allowed: string): RequestHandler {
  return (request, response) => {
    const message = `${shortenMethod(request)} is not allowed on this path: use ${allowed}.`;
    sendRefusal(response, refuse('method_not_allowed', message), { allow: allowed });
  };
}

/** Known paths without their `/v1`: the most common mistake in a base URL. */
const knownBelowV1 = /^\/(chat\/completions|responses|models|key)(\/|$)/;

/** Answers 404 on an unknown path. */
export const unknownUrl: RequestHandler = (request, response) => {
  const corrected = pathWithV1(request);
  const advice = corrected === null ? 'Check the path for typos.' : `Did you mean ${corrected}?`;
  const message = `Unknown request URL: ${shortenMethod(request)} ${shortenPath(request.originalUrl)}. ${advice}`;
  sendRefusal(response, refuse('unknown_url', message));
};

/**
 * Answers 404 to a client of the gateway that left out the `/v1`, which would get a page of the surrounding app
 * otherwise. The app may have a path of the same name: only a request with a key of the gateway is answered here.
 */
export function suggestV1(prepare: RequestHandler): RequestHandler {
  return (request, response, next) => {
    const isClient = isWellFormed(readBearer(request.headers.authorization) ?? '');
    if (!isClient || pathWithV1(request) === null) return next();
    prepare(request, response, () => unknownUrl(request, response, next));
  };
}

/** The path with the `/v1` that it lacks, below the path where the router is mounted; `null` for any other path. */
function pathWithV1({ url, originalUrl }: Request): string | null {
  const path = shortenPath(url);
  const whole = shortenPath(originalUrl);
  const mount = whole.endsWith(path) ? whole.slice(0, -path.length) : '';
  return knownBelowV1.test(path) && !mount.endsWith('/v1') ? `${mount}/v1${path}` : null;
}

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

function shortenMethod({ method }: Request): string {
  return method.slice(0, maxQuotedMethod);
}

/** Without the query, which may hold secrets. */
function shortenPath(url: string): string {
  return (url.split('?', 1)[0] ?? '').slice(0, maxQuotedPath);
}
