import { refuse } from '../../shared/errors.ts';
import { nearestName } from '../../shared/nearest-name.ts';
import type { KeyDirectory } from '../../domain/ports/key-store.ts';
import { readBearer } from '../../pipeline/admission/authenticate.ts';
import { shortenMethod } from '../fallback-handlers.ts';
import { sendRefusal } from '../answers/respond.ts';
import { pathOf } from '../router.ts';
import type { Request, RequestHandler } from '../router.ts';

/** How much of a path an error message quotes, in characters. */
const maxQuotedPath = 128;

/** The beginning of every path for clients. */
const base = '/v1/';
const paths = ['/v1/chat/completions', '/v1/responses', '/v1/models', '/v1/key'] as const;

const offer =
  'This service offers text only: POST /v1/chat/completions, POST /v1/responses and GET /v1/models.';

/** The end of a known path below a wrong base, such as `/openai/v1`, `/v1/v1` or none at all. */
const knownTail = /\/(chat\/completions|responses|(?:models|key)(?:\/[^:]*)?)\/?$/i;

/** What of such an end is no id, in which capital letters differ from small ones. */
const fixedParts = /^(chat\/completions|responses|models|key(\/(requests|statement|usage)\b)?)/i;

/** The paths of the other listener. */
const operatorsPaths = /^\/(metrics|healthz|readyz|docs|console|admin)(\/|$)/;
const clientsPaths = /^\/v1(\/|$)/;

/** Answers 404 on a path that clients don't have. */
export const unknownUrl: RequestHandler = (request, response) => {
  const mount = mountOf(request).replace(/\/v1$/, '');
  const path = shortenPath(request);
  const below = path.slice(mount.length);
  const meant = likeliestPath(below);
  const isNone = meant === null || meant === below;
  sendRefusal(response, refuseUrl(request, isNone ? adviseOn(path) : `Did you mean ${mount}${meant}?`));
};

/** Answers 404 on a path of a listener whose paths for clients are all below a base path (empty for none). */
export function unknownUrlBelow(basePath: string): RequestHandler {
  if (basePath === '') return unknownUrl;
  return (request, response) => {
    const path = shortenPath(request);
    const meant = likeliestPath(path.startsWith(basePath) ? path.slice(basePath.length) : path);
    const advice =
      meant === null
        ? `All paths of this service begin with ${basePath}, as ${basePath}/v1/models does.`
        : `Did you mean ${basePath}${meant}?`;
    sendRefusal(response, refuseUrl(request, advice));
  };
}

/** Known paths without their `/v1`: the most common mistake in a base URL. */
const knownBelowV1 = /^\/(chat\/completions|responses|models|key)(\/|$)/;

/**
 * Answers 404 to a client of the gateway that left out the `/v1`, which would get a page of the surrounding app
 * otherwise. The app may have a path of the same name: only a request with a key of the gateway is answered here.
 */
export function suggestV1(prepare: RequestHandler, keys: Pick<KeyDirectory, 'couldBeKey'>): RequestHandler {
  return (request, response, next) => {
    if (!knownBelowV1.test(request.url) || mountOf(request).endsWith('/v1')) return next();
    const presented = readBearer(request.headers.authorization);
    if (presented === null || !keys.couldBeKey(presented)) return next();
    prepare(request, response, () => unknownUrl(request, response, next));
  };
}

/** The path below which the gateway is mounted, or its `/v1` there; a host need not say it in a field of its own. */
function mountOf({ url, originalUrl }: Request): string {
  const [whole, path] = [pathOf(originalUrl), pathOf(url)];
  return whole.endsWith(path) ? whole.slice(0, -path.length) : whole;
}

/** Answers 404 on a path that operators don't have. */
export const unknownOperatorsUrl: RequestHandler = (request, response) => {
  const advice = clientsPaths.test(shortenPath(request))
    ? 'This is the listener for operators: requests for text go to the address of server.host and server.port.'
    : 'Check the path for typos.';
  sendRefusal(response, refuseUrl(request, advice));
};

function refuseUrl(request: Request, advice: string): ReturnType<typeof refuse> {
  return refuse(
    'unknown_url',
    `Unknown request URL: ${shortenMethod(request)} ${shortenPath(request)}. ${advice}`,
  );
}

function adviseOn(path: string): string {
  return operatorsPaths.test(path)
    ? "The operators' paths are on the admin listener, at another port."
    : offer;
}

/** The known path that was probably meant, which may be this one; `null` if none is like it. */
function likeliestPath(path: string): string | null {
  const [, tail] = knownTail.exec(path) ?? [];
  return tail === undefined
    ? nearestPath(path)
    : base + tail.replace(fixedParts, (fixed) => fixed.toLowerCase());
}

/** The known path most like a misspelt one. Below `/v1/`, which all of them share, only the rest is compared. */
function nearestPath(path: string): string | null {
  if (!path.startsWith(base)) return nearestName(path, paths);
  const rests = paths.map((known) => known.slice(base.length));
  const rest = nearestName(path.slice(base.length), rests);
  return rest === null ? null : base + rest;
}

function shortenPath({ originalUrl }: Request): string {
  return pathOf(originalUrl).slice(0, maxQuotedPath);
}
