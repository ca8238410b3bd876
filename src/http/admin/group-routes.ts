import { methodNotAllowed } from '../fallback-handlers.ts';
import { sendAnswer } from '../respond.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { listGroups } from './groups.ts';
import type { KeyAdministration } from './keys.ts';

/** The route `/admin/groups`. */
export function createGroupRoutes(administration: KeyAdministration): Router {
  const router = createRouter();
  router.get('/groups', async (_request, response) =>
    sendAnswer(response, 200, await listGroups(administration)),
  );
  router.all('/groups', methodNotAllowed('GET'));
  return router;
}
