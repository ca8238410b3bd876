import { z } from 'zod';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import { authenticate } from '../../pipeline/admission/authenticate.ts';
import type { Ports } from '../../pipeline/ports.ts';
import { runTextRequest } from '../../pipeline/run-request.ts';
import type { Protocol } from '../../protocol/text.ts';
import { check, readQuery } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { HttpClientConnection } from '../http-client-connection.ts';
import type { ClientSettings } from '../http-client-connection.ts';
import { listModels } from '../offered-models.ts';
import { sendAnswer, sendRefusal } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Request, Router } from '../router.ts';
import { endWithSession } from './guard.ts';

/** What a try-out needs: all that a request of a client does. */
export interface TryOutPorts {
  readonly ports: Ports;
  readonly settings: ClientSettings;
}

/** The query of a try-out. */
export const tryOutQuery = z.strictObject({ key: storedText });

/**
 * The routes under `/admin/try`: requests of clients that an operator sends as one of the keys, whose secret is stored
 * nowhere. They go through the same pipeline as those of the key's holder, and are recorded and charged as these are.
 */
export function createTryOutRoutes({ ports, settings }: TryOutPorts): Router {
  const router = createRouter({ caseSensitive: true });
  const generate = (protocol: Protocol, path: string): void => {
    router.post(path, endWithSession, (request, response) => {
      const keyId = readKeyId(request);
      if (isRefusal(keyId)) return sendRefusal(response, keyId);
      const route = `/admin${path}`;
      const client = new HttpClientConnection(request, response, route, settings, ports.fastPath, keyId);
      void runTextRequest(protocol, client, ports);
    });
    router.all(path, methodNotAllowed('POST'));
  };
  generate('chat', '/try/chat/completions');
  generate('responses', '/try/responses');
  router.get('/try/models', async (request, response) => {
    sendAnswer(response, 200, await listModelsOf(readKeyId(request), ports));
  });
  router.all('/try/models', methodNotAllowed('GET'));
  return router;
}

/** The id of the key that the request is sent as. */
function readKeyId(request: Request): string | Refusal {
  const given: { readonly key?: unknown } = readQuery(request, tryOutQuery);
  if (given.key === undefined || given.key === '')
    return refuse(
      'missing_required_parameter',
      "Say which key the request is sent as: '?key=<id>'. GET /admin/keys lists the keys with their ids.",
      { param: 'key' },
    );
  const query = check(given, tryOutQuery);
  return isRefusal(query) ? query : query.key;
}

async function listModelsOf(keyId: string | Refusal, ports: Ports): Promise<object | Refusal> {
  if (isRefusal(keyId)) return keyId;
  const operator = { triedKeyId: keyId, authorization: undefined, otherKeyHeader: null };
  const key = await authenticate(operator, ports.keys);
  return isRefusal(key) ? key : listModels(key, ports);
}
