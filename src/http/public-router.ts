import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Protocol } from '../protocol/text.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { OfferedModel } from '../domain/routing.ts';
import type { Ports } from '../pipeline/ports.ts';
import { findModel, mayUse } from '../pipeline/route.ts';
import { runTextRequest } from '../pipeline/run-request.ts';
import { createOwnKeyRoutes } from './own-key-routes.ts';
import type { OwnKeyPorts } from './own-key-routes.ts';
import { HttpClientConnection, authenticateRequest } from './http-client-connection.ts';
import { createPassthroughRouter } from './passthrough.ts';
import type { Passthrough, PassthroughMiddlewares } from './passthrough.ts';
import { methodNotAllowed, refuseFaults } from './fallback-handlers.ts';
import { suggestV1, unknownUrl } from './unknown-url.ts';
import { requestIdOf } from './request-id.ts';
import { sendAnswer } from './respond.ts';
import { createRouter } from './router.ts';
import type { Request, RequestHandler, Response, Router } from './router.ts';

/** Creates the routes under `/v1` and the passthrough paths. All other paths are left to the surrounding app. */
export function createPublicRouter(
  ports: Ports,
  ownKey: OwnKeyPorts,
  passthrough: { readonly paths: readonly Passthrough[]; readonly middlewares: PassthroughMiddlewares },
  prepare: RequestHandler,
  maxBodyBytes: number,
): Router {
  const router = createRouter({ caseSensitive: true });
  router.use(
    createPassthroughRouter(passthrough.paths, passthrough.middlewares, ports, prepare, maxBodyBytes),
  );
  router.use('/v1', prepare);
  const streaming = { maxBodyBytes, isFast: ports.fastRoad };
  const generate =
    (protocol: Protocol): RequestHandler =>
    (request, response) => {
      const client = new HttpClientConnection(requestIdOf(response), request, response, streaming);
      void runTextRequest(protocol, client, ports);
    };

  router.post('/v1/chat/completions', generate('chat'));
  router.all('/v1/chat/completions', methodNotAllowed('POST'));
  router.post('/v1/responses', generate('responses'));
  router.all('/v1/responses', methodNotAllowed('POST'));
  router.get('/v1/models', (request, response) => answerModels(request, response, ports, listModels));
  router.all('/v1/models', methodNotAllowed('GET, HEAD'));
  router.get('/v1/models/*id', (request, response) =>
    answerModels(request, response, ports, (key) => readModel(modelIdOf(request), key, ports)),
  );
  router.all('/v1/models/*id', methodNotAllowed('GET, HEAD'));
  router.use(createOwnKeyRoutes(ownKey));
  router.use('/v1', unknownUrl);
  router.use(suggestV1(prepare, ports.keys));
  router.use(refuseFaults(ports.telemetry.fault));
  return router;
}

async function answerModels(
  request: Request,
  response: Response,
  ports: Ports,
  read: (key: ApiKey, ports: Ports) => Promise<object | Refusal>,
): Promise<void> {
  const key = await authenticateRequest(request, ports.keys);
  sendAnswer(response, 200, isRefusal(key) ? key : await read(key, ports));
}

/** Lists the models that the key may use. */
async function listModels(key: ApiKey, { models }: Ports): Promise<object | Refusal> {
  const offered = await models.list();
  if (isRefusal(offered)) return offered;
  return { object: 'list', data: offered.filter((model) => mayUse(key, model)).map(presentModel) };
}

async function readModel(id: string, key: ApiKey, { models }: Ports): Promise<object | Refusal> {
  const offered = await findModel(id, key, models);
  return isRefusal(offered) ? offered : presentModel(offered);
}

function presentModel({ id, createdAtSeconds }: OfferedModel): object {
  return { id, object: 'model', created: createdAtSeconds, owned_by: 'textgate' };
}

/** The model id of a path; it may contain slashes, encoded or not. */
function modelIdOf(request: Request): string {
  const id: unknown = request.params['id'];
  return Array.isArray(id) ? id.join('/') : String(id);
}
