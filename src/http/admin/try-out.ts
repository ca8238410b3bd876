import { z } from 'zod';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { KeyDirectory } from '../../domain/ports/key-store.ts';
import { newPlaygroundKey, playgroundKeyId } from '../../operations/playground-key.ts';
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
  /** Their keys include the playground's, which is made when it is used first. */
  readonly ports: Ports;
  /** The keys that are there already: who only reads makes none. */
  readonly keys: KeyDirectory;
  readonly clock: Clock;
  readonly settings: ClientSettings;
}

/** The query of a try-out. Without a key it is the playground's. */
export const tryOutQuery = z.strictObject({ key: storedText.optional() });

/**
 * The routes under `/admin/try`: requests of clients that an operator sends as one of the keys, whose secret is stored
 * nowhere. They go through the same pipeline as those of the key's holder, and are recorded and charged as these are.
 */
export function createTryOutRoutes({ ports, keys, clock, settings }: TryOutPorts): Router {
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
    'GET /try/models': (request) => listModelsOf(readKeyId(request), ports, keys, clock),
  });
}

/** The id of the key that the request is sent as. An empty one is a mistake, as of a script whose variable is not set. */
function readKeyId(request: Request): string | Refusal {
  const given: { readonly key?: unknown } = readQuery(request, tryOutQuery);
  if (given.key === '')
    return refuse(
      'missing_required_parameter',
      "Say which key the request is sent as: '?key=<id>', which GET /admin/keys lists; or leave 'key' out, and it is sent as the playground's own key.",
      { param: 'key' },
    );
  const query = check(given, tryOutQuery);
  return isRefusal(query) ? query : (query.key ?? playgroundKeyId);
}

async function listModelsOf(
  keyId: string | Refusal,
  ports: Ports,
  keys: KeyDirectory,
  clock: Clock,
): Promise<object | Refusal> {
  if (isRefusal(keyId)) return keyId;
  const operator = { triedKeyId: keyId, authorization: undefined, otherKeyHeader: null };
  const key = await authenticate(operator, keys);
  if (!isRefusal(key)) return listModels(key, ports);
  const isNotMade = keyId === playgroundKeyId && key.code === 'key_not_found';
  return isNotMade ? listModels(newPlaygroundKey(clock.now()), ports) : key;
}
