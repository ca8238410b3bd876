import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuse } from '../shared/errors.ts';
import { sendRefusal } from './answers/respond.ts';
import { createRouter } from './router.ts';
import type { RequestHandler } from './router.ts';

/** Runs a request through routes; calls `next` if none of them answers it, with the error if one failed within it. */
export type RunRoutes = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * Serves a request of Node's HTTP server, as middleware of any host (`node:http`, Express, Fastify, Connect). With
 * `next`, the paths of other routes are left to it; without, the gateway answers every request.
 */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/** Makes routes usable with `next` and without: then every path that they leave goes to `unknownUrl`. */
export function createNodeHandler(
  routes: RunRoutes,
  prepare: RequestHandler,
  unknownUrl: RequestHandler,
): NodeHandler {
  const standalone = createRouter().use(prepare, routes, unknownUrl);
  return (request, response, next) => {
    if (next === undefined) standalone(request, response, () => refuseUnroutable(response));
    else routes(request, response, next);
  };
}

/** Ends a request that can't be routed, or whose route failed within its answer. */
function refuseUnroutable(response: ServerResponse): void {
  if (response.headersSent) response.destroy();
  else sendRefusal(response, refuse('unknown_url', 'The path of this request cannot be parsed.'));
}
