import { methodNotAllowed } from '../fallback-handlers.ts';
import { sendBody } from '../answers/respond.ts';
import type { Request, RequestHandler, Response } from '../router.ts';

/** The paths of probes, which balancers call without a key. */
const paths = new Set(['/healthz', '/readyz']);

/**
 * Answers the probes of the listener for clients, which say nothing but whether the process lives, and whether requests
 * should be sent to it: at the root, whose path a balancer knows, and below the base path, to which a proxy may send all
 * that it gets.
 */
export function answerProbes(basePath: string, isReady: () => Promise<boolean>): RequestHandler {
  const refuseMethod = methodNotAllowed('GET, HEAD');
  const isReadyNow = shareRunning(isReady);
  return (request, response, next) => {
    const path = pathOf(request);
    const below = path.startsWith(basePath) ? path.slice(basePath.length) : path;
    const probe = paths.has(path) ? path : below;
    if (!paths.has(probe)) return next();
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(request, response, next);
    if (probe === '/healthz') return sendStatus(response, 200, 'ok');
    return isReadyNow().then((ready) =>
      ready ? sendStatus(response, 200, 'ready') : sendStatus(response, 503, 'not ready'),
    );
  };
}

/**
 * Lets calls that come while one is running share its result: anyone may probe, and a check asks the database, and all
 * workers while it fails.
 */
function shareRunning<Result>(call: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | null = null;
  return () => (running ??= call().finally(() => (running = null)));
}

function sendStatus(response: Response, status: number, text: string): void {
  sendBody(response, status, JSON.stringify({ status: text }));
}

function pathOf({ url }: Request): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}
