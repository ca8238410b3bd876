import { z } from 'zod';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import { authenticate } from '../../pipeline/admission/authenticate.ts';
import type { Ports } from '../../pipeline/ports.ts';
import { runTextRequest } from '../../pipeline/run-request.ts';
import type { Protocol } from '../../protocol/text.ts';
import { check, readQuery } from '../checked-input.ts';
import { HttpClientConnection } from '../http-client-connection.ts';
import type { ClientSettings } from '../http-client-connection.ts';
import { listModels } from '../offered-models.ts';
import { addRoutes } from '../route-table.ts';
import type { Route } from '../route-table.ts';
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
  const generate =
    (protocol: Protocol, path: string): Route =>
    (request, response) => {
      endWithSession(request, response);
      const keyId = readKeyId(request);
      if (isRefusal(keyId)) return keyId;
      const client = new HttpClientConnection(request, response, path, settings, ports.fastPath, keyId);
      void runTextRequest(protocol, client, ports);
      return null;
    };
  return addRoutes(createRouter({ caseSensitive: true }), {
    'POST /try/chat/completions': generate('chat', '/admin/try/chat/completions'),
    'POST /try/responses': generate('responses', '/admin/try/responses'),
    'GET /try/models': (request) => listModelsOf(readKeyId(request), ports),
  });
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
