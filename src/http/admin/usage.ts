import { methodNotAllowed } from '../fallback-handlers.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { readUsage, readUsageQuery, sendUsage, usageQuery } from '../usage.ts';
import type { UsageReads } from '../usage.ts';

/** The route `/admin/usage`. */
export function createUsageRoutes(reads: UsageReads): Router {
  const router = createRouter();
  router.get('/usage', async (request, response) => {
    sendUsage(request, response, await readUsage(readUsageQuery(request, usageQuery), reads));
  });
  router.all('/usage', methodNotAllowed('GET'));
  return router;
}
