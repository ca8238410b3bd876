import type { Refusal } from '../shared/errors.ts';
import { sendAnswer } from './answers/respond.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import type { Request, Response, Router } from './router.ts';

/** What a route answers: an object as JSON, or a refusal; `null` where it has sent its answer itself. */
export type RouteAnswer = object | Refusal | null;

/** Answers the requests of a path with one method. */
export type Route = (request: Request, response: Response) => RouteAnswer | Promise<RouteAnswer>;

/** The methods of routes, as a refusal of another one lists them, and how a router adds each. */
const adders = { GET: 'get', 'GET, HEAD': 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const;

type Methods = keyof typeof adders;

/** Adds routes to a router, by their methods and paths. Every other method of their paths is refused. */
export function addRoutes(
  router: Router,
  routes: { readonly [Each in `${Methods} /${string}`]: Route },
): Router {
  const methodsOf = new Map<string, string[]>();
  for (const [name, route] of Object.entries(routes)) {
    const [methods, path] = name.split(' /') as [Methods, string];
    methodsOf.set(path, [...(methodsOf.get(path) ?? []), methods]);
    router[adders[methods]](`/${path}`, async (request, response) => {
      const answer = await route(request, response);
      if (answer !== null) sendAnswer(response, 200, answer);
    });
  }
  for (const [path, methods] of methodsOf) router.all(`/${path}`, methodNotAllowed(methods.join(', ')));
  return router;
}
