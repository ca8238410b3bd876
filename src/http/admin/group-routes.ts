import { methodNotAllowed } from '../fallback-handlers.ts';
import { sendAnswer } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { listGroups } from './groups.ts';
import type { GroupReads } from './groups.ts';

/** The route `/admin/groups`. */
export function createGroupRoutes(groups: GroupReads): Router {
  const router = createRouter();
  router.get('/groups', async (_request, response) => sendAnswer(response, 200, await listGroups(groups)));
  router.all('/groups', methodNotAllowed('GET'));
  return router;
}
