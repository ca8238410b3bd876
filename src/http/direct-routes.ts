import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Prepare } from './answers/prepare-answers.ts';
import type { ErrorRequestHandler } from './router.ts';

/** Answers a request, as every host provides it. */
type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A route that most requests take. It has neither parameters nor a query, so its handler needs nothing of a router. */
export interface DirectRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly handle: Handle;
}

/** Finds the handler of a request whose method and target are exactly those of a route; `undefined` for all others. */
export type FindDirect = (method: string | undefined, target: string) => Handle | undefined;

/**
 * Puts a table of exact targets in front of a router, which walks its layers for every request. `prepare` is the first
 * handler, as in the router; `onFault` answers what a handler throws. No passthrough path is hidden: the config refuses
 * those that are the gateway's own.
 */
export function createDirectRoutes(
  routes: readonly DirectRoute[],
  prepare: Prepare,
  onFault: ErrorRequestHandler,
): FindDirect {
  const found = new Map(
    routes.map(({ method, path, handle }) => {
      const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        try {
          await handle(request, response);
        } catch (error) {
          onFault(error, request, response, () => response.destroy());
        }
      };
      const run: Handle = (request, response) => {
        // Its connection may be closed since it was found, as for too many requests: the key loses no start by it.
        if (response.destroyed) return;
        try {
          prepare(request, response, () => void answer(request, response));
        } catch (error) {
          onFault(error, request, response, () => response.destroy());
        }
      };
      return [path, { method, run }] as const;
    }),
  );
  return (method, target) => {
    const route = found.get(target);
    return route?.method === method ? route?.run : undefined;
  };
}
