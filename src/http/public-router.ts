import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Protocol } from '../protocol/text.ts';
import type { NextId } from '../domain/ports.ts';
import type { OfferedModel } from '../domain/routing.ts';
import { authenticate } from '../pipeline/authenticate.ts';
import type { Ports } from '../pipeline/exchange.ts';
import { findModel } from '../pipeline/route.ts';
import { runExchange } from '../pipeline/run-exchange.ts';
import { HttpClient, findDuplicateHeader } from './http-client.ts';
import {
  idOf,
  identify,
  methodNotAllowed,
  refuseFaults,
  sendJson,
  sendRefusal,
  unknownUrl,
} from './refusal-response.ts';

/** The paths under `/v1`. Everything else is left to the app around it. */
export function createPublicRouter(ports: Ports, nextId: NextId, maxBodyBytes: number): Router {
  const router = Router({ caseSensitive: true });
  router.use('/v1', identify(nextId));
  const generate =
    (protocol: Protocol): RequestHandler =>
    (request, response) => {
      const client = new HttpClient(idOf(response), request, response, maxBodyBytes, ports.clock);
      void runExchange(protocol, client, ports);
    };

  router.post('/v1/chat/completions', generate('chat'));
  router.all('/v1/chat/completions', methodNotAllowed('POST'));
  router.post('/v1/responses', generate('responses'));
  router.all('/v1/responses', methodNotAllowed('POST'));
  router.get('/v1/models', (request, response) => answerModels(request, response, ports, listModels));
  router.all('/v1/models', methodNotAllowed('GET, HEAD'));
  router.get('/v1/models/*id', (request, response) =>
    answerModels(request, response, ports, () => showModel(modelIdOf(request), ports)),
  );
  router.all('/v1/models/*id', methodNotAllowed('GET, HEAD'));
  router.use('/v1', unknownUrl);
  router.use(refuseFaults(ports.telemetry.fault));
  return router;
}

async function answerModels(
  request: Request,
  response: Response,
  ports: Ports,
  read: (ports: Ports) => Promise<object | Refusal>,
): Promise<void> {
  const key = findDuplicateHeader(request) ?? (await authenticate(request.headers.authorization, ports.keys));
  const answer = isRefusal(key) ? key : await read(ports);
  if (isRefusal(answer)) sendRefusal(response, answer);
  else sendJson(response, 200, JSON.stringify(answer));
}

async function listModels({ models }: Ports): Promise<object | Refusal> {
  const offered = await models.list();
  return isRefusal(offered) ? offered : { object: 'list', data: offered.map(modelObject) };
}

async function showModel(id: string, { models }: Ports): Promise<object | Refusal> {
  const offered = await findModel(id, models);
  return isRefusal(offered) ? offered : modelObject(offered);
}

function modelObject({ id, createdAt }: OfferedModel): object {
  return { id, object: 'model', created: createdAt, owned_by: 'textgate' };
}

/** A model's id may hold slashes, encoded or not. */
function modelIdOf(request: Request): string {
  const id: unknown = request.params['id'];
  return Array.isArray(id) ? id.join('/') : String(id);
}
