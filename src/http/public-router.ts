import type { IncomingMessage } from 'node:http';
import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Protocol } from '../protocol/text.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Ports } from '../pipeline/ports.ts';
import { runTextRequest } from '../pipeline/run-request.ts';
import { createOwnKeyRoutes } from './own-key-routes.ts';
import type { OwnKeyPorts } from './own-key-routes.ts';
import { createDirectRoutes } from './direct-routes.ts';
import type { DirectRoute } from './direct-routes.ts';
import { HttpClientConnection, authenticateRequest } from './http-client-connection.ts';
import type { ClientSettings } from './http-client-connection.ts';
import { createPassthroughRouter } from './passthrough/passthrough.ts';
import type { Passthrough, PassthroughMiddlewares } from './passthrough/passthrough.ts';
import { methodNotAllowed, refuseFaults } from './fallback-handlers.ts';
import type { Prepare } from './answers/prepare-answers.ts';
import { createResponseRoutes } from './response-routes.ts';
import { createStatementKeyRoutes } from './statement-routes.ts';
import { suggestV1, unknownUrl } from './heads/unknown-url.ts';
import { listModels, readModel } from './offered-models.ts';
import { sendAnswer } from './answers/respond.ts';
import { createRouter } from './router.ts';
import type { Request, Response } from './router.ts';

/**
 * Creates the routes under `/v1` and the passthrough paths: as a router for any host, and those of them that our own listener
 * finds at once. All other paths are left to the surrounding app.
 */
export function createPublicRouter(
  ports: Ports,
  ownKey: OwnKeyPorts,
  passthrough: { readonly paths: readonly Passthrough[]; readonly middlewares: PassthroughMiddlewares },
  prepare: Prepare,
  settings: ClientSettings,
) {
  const router = createRouter({ caseSensitive: true });
  router.use(createPassthroughRouter(passthrough.paths, passthrough.middlewares, ports, prepare, settings));
  router.use('/v1', prepare);
  const onFault = refuseFaults(ports.telemetry.fault);
  const readers = { ...ports, addresses: settings.addresses };
  const direct = directRoutes(readers, settings);
  for (const { method, path, handle } of direct) {
    if (method === 'GET') router.get(path, handle);
    else router.post(path, handle);
    router.all(path, methodNotAllowed(method === 'GET' ? 'GET, HEAD' : method));
  }
  router.get('/v1/models/*id', (request, response) =>
    answerModels(request, response, readers, (key) => readModel(modelIdOf(request), key, ports)),
  );
  router.all('/v1/models/*id', methodNotAllowed('GET, HEAD'));
  router.use(createResponseRoutes(ports, settings));
  router.use(createOwnKeyRoutes(ownKey));
  router.use(createStatementKeyRoutes(ownKey.statements));
  router.use('/v1', unknownUrl);
  router.use(suggestV1(prepare, ports.keys));
  router.use(onFault);
  return { router, findDirect: createDirectRoutes(direct, prepare, onFault) };
}

/** What a list of models needs beside the ports of the pipeline. */
type ReaderPorts = Ports & Pick<ClientSettings, 'addresses'>;

function directRoutes(ports: ReaderPorts, settings: ClientSettings): readonly DirectRoute[] {
  const generate = (protocol: Protocol, path: string): DirectRoute => ({
    method: 'POST',
    path,
    handle(request, response) {
      const client = new HttpClientConnection(request, response, path, settings, ports.fastPath);
      void runTextRequest(protocol, client, ports);
    },
  });
  return [
    generate('chat', '/v1/chat/completions'),
    generate('responses', '/v1/responses'),
    {
      method: 'GET',
      path: '/v1/models',
      handle: (request, response) => answerModels(request, response, ports, listModels),
    },
  ];
}

async function answerModels(
  request: IncomingMessage,
  response: Response,
  ports: ReaderPorts,
  read: (key: ApiKey, ports: Ports) => Promise<object | Refusal>,
): Promise<void> {
  const key = await authenticateRequest(request, ports);
  sendAnswer(response, 200, isRefusal(key) ? key : await read(key, ports));
}

/** The model id of a path; it may contain slashes, encoded or not. */
function modelIdOf(request: Request): string {
  const id: unknown = request.params['id'];
  return Array.isArray(id) ? id.join('/') : String(id);
}
