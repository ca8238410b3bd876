import { pipeline } from 'node:stream/promises';
import { isRefusal } from '../../shared/errors.ts';
import type { Maintenance } from '../../operations/maintenance.ts';
import { noStore } from '../answers/answer-headers.ts';
import { readOnlyFault } from './guard.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { workUntilLeft } from '../answers/respond.ts';
import { addRoutes } from '../route-table.ts';
import type { RouteAnswer } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Response, Router } from '../router.ts';

/** The routes `/admin/ledger` and `/admin/backup`. Both may take minutes. */
export function createMaintenanceRoutes(maintenance: Maintenance): Router {
  const router = createRouter();
  // Express answers HEAD with the GET handler, which would copy the database for nothing.
  router.head('/backup', methodNotAllowed('GET'));
  return addRoutes(router, {
    'GET /ledger': (_request, response) =>
      workUntilLeft(response, (signal) => maintenance.verifyLedger(signal)),
    'GET /backup': (request, response) => readOnlyFault(request) ?? sendBackup(response, maintenance),
  });
}

async function sendBackup(response: Response, maintenance: Maintenance): Promise<RouteAnswer> {
  const copy = await maintenance.backUp();
  if (isRefusal(copy)) return copy;
  try {
    response.writeHead(200, {
      'content-type': 'application/vnd.sqlite3',
      'content-length': copy.bytes,
      'content-disposition': 'attachment; filename="textgate.db"',
      ...noStore,
    });
    await pipeline(copy.read(), response);
  } catch {
    // The client disconnected, or the disk failed. The content length shows the client that the copy is incomplete.
    response.destroy();
  } finally {
    await copy.remove();
  }
  return null;
}
