import { pipeline } from 'node:stream/promises';
import { isRefusal } from '../../shared/errors.ts';
import type { Maintenance } from '../../operations/maintenance.ts';
import { noStore } from '../answers/answer-headers.ts';
import { adminOnly } from './guard.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { sendAnswer, sendRefusal } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Response, Router } from '../router.ts';

/** The routes `/admin/ledger` and `/admin/backup`. Both may take minutes. */
export function createMaintenanceRoutes(maintenance: Maintenance): Router {
  const router = createRouter();
  router.get('/ledger', async (_request, response) => {
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort());
    try {
      sendAnswer(response, 200, await maintenance.verifyLedger(disconnected.signal));
    } catch (error) {
      if (!disconnected.signal.aborted) throw error;
    }
  });
  router.all('/ledger', methodNotAllowed('GET'));
  // Express answers HEAD with the GET handler, which would copy the database for nothing.
  router.head('/backup', methodNotAllowed('GET'));
  router.get('/backup', adminOnly, (_request, response) => sendBackup(response, maintenance));
  router.all('/backup', methodNotAllowed('GET'));
  return router;
}

async function sendBackup(response: Response, maintenance: Maintenance): Promise<void> {
  const copy = await maintenance.backUp();
  if (isRefusal(copy)) return sendRefusal(response, copy);
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
}
