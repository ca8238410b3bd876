import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { keyQuery } from './key-inputs.ts';
import type { KeyOperations } from './keys.ts';
import { pathIdOf, readJson, readWholeQuery } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { sendAnswer } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Request, RequestHandler, Router } from '../router.ts';

/** The routes under `/admin/keys`: create, list, read, change, revoke, rotate and credit keys. */
export function createKeyRoutes(keys: KeyOperations): Router {
  const router = createRouter();
  router.get(
    '/',
    handle(async (request) => {
      const query = readWholeQuery(request, keyQuery, 'This list');
      return isRefusal(query) ? query : keys.list(query);
    }),
  );
  router.post(
    '/',
    handleBody((_id, body) => keys.create(body), 201),
  );
  router.all('/', methodNotAllowed('GET, POST'));

  router.get(
    '/:id',
    handle((request) => keys.get(pathIdOf(request))),
  );
  router.patch(
    '/:id',
    handleBody((id, body) => keys.update(id, body)),
  );
  router.delete(
    '/:id',
    handle((request) => keys.revoke(pathIdOf(request))),
  );
  router.all('/:id', methodNotAllowed('GET, PATCH, DELETE'));

  router.post(
    '/:id/rotate',
    handleBody((id, body) => keys.rotate(id, body)),
  );
  router.all('/:id/rotate', methodNotAllowed('POST'));

  router.post(
    '/:id/credits',
    handleBody((id, body) => keys.credit(id, body)),
  );
  router.all('/:id/credits', methodNotAllowed('POST'));
  return router;
}

function handle(work: (request: Request) => Promise<object | Refusal>): RequestHandler {
  return async (request, response) => sendAnswer(response, 200, await work(request));
}

/** Handles a request with a JSON body; `work` gets the id of the path, too. */
function handleBody(
  work: (id: string, body: unknown) => Promise<object | Refusal>,
  status = 200,
): RequestHandler {
  return async (request, response) => {
    const body = await readJson(request, response);
    sendAnswer(response, status, isRefusal(body) ? body : await work(pathIdOf(request), body));
  };
}
