import { readWholeQuery } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { readUsage, sendUsage, usageQuery } from '../usage.ts';
import type { UsageReads } from '../usage.ts';

/** The route `/admin/usage`. */
export function createUsageRoutes(reads: UsageReads): Router {
  const router = createRouter();
  router.get('/usage', async (request, response) => {
    sendUsage(request, response, await readUsage(readWholeQuery(request, usageQuery, 'Usage'), reads));
  });
  router.all('/usage', methodNotAllowed('GET'));
  return router;
}
