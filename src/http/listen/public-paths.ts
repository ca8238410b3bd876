import type { FindDirect } from '../direct-routes.ts';
import { createRouter } from '../router.ts';
import type { RequestHandler } from '../router.ts';
import type { RunRoutes } from '../standalone.ts';
import { unknownUrlBelow } from '../heads/unknown-url.ts';
import { answerFrontDoor } from './front-door.ts';
import type { FrontDoor } from './front-door.ts';
import { answerProbes } from './probes.ts';

/** The paths of the listener for clients, in the form that a listener takes them. */
export interface PublicPaths {
  readonly routes: RunRoutes;
  readonly findDirect: FindDirect;
  readonly unknownUrl: RequestHandler;
}

/**
 * Puts the routes for clients below a base path (empty for none), and probes and a page for people beside them, which an app
 * that mounts the routes has of its own.
 */
export function createPublicPaths(
  basePath: string,
  routes: RunRoutes,
  findDirect: FindDirect,
  isReady: () => Promise<boolean>,
  door: () => FrontDoor,
): PublicPaths {
  const router = createRouter({ caseSensitive: true });
  router.use(answerProbes(basePath, isReady));
  if (basePath === '') router.use(routes);
  else router.use(basePath, routes);
  return {
    routes: router,
    findDirect:
      basePath === ''
        ? findDirect
        : (method, target) =>
            target.startsWith(basePath) ? findDirect(method, target.slice(basePath.length)) : undefined,
    unknownUrl: answerFrontDoor(basePath, door, unknownUrlBelow(basePath)),
  };
}
