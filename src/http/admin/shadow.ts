import type { ShadowView } from '../../domain/shadows/shadow-book.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { presentList } from '../present/list.ts';
import { presentShadow } from '../present/shadow.ts';
import { sendAnswer } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';

/** The route `/admin/shadow`: the shadow routes of the config in force. */
export function createShadowRoutes(views: () => Promise<readonly ShadowView[]>): Router {
  const router = createRouter();
  router.get('/shadow', async (_request, response) => {
    sendAnswer(response, 200, presentList((await views()).map(presentShadow), null));
  });
  router.all('/shadow', methodNotAllowed('GET'));
  return router;
}
