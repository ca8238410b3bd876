import { z } from 'zod';
import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor, AuditEntry } from '../../domain/audit/audit-line.ts';
import { idIn } from '../../domain/audit/safe-text.ts';
import { codeOf } from '../../domain/exchange-summary.ts';
import type { ExchangeSummary } from '../../domain/exchange-summary.ts';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import type { KeyDirectory } from '../../domain/ports/key-store.ts';
import { newPlaygroundKey, playgroundKeyId } from '../../operations/playground-key.ts';
import { authenticate } from '../../pipeline/admission/authenticate.ts';
import type { Ports, SettledObserver } from '../../pipeline/ports.ts';
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
import { actorOf } from './acts.ts';
import type { NoteAct } from './acts.ts';
import { endWithProof } from './guard.ts';

/** What a try-out needs: all that a request of a client does. */
export interface TryOutPorts {
  readonly ports: Ports;
  /** The keys with the playground's, which is made when an operator uses it first: who only reads makes none. */
  readonly keysFor: (by: Actor) => KeyDirectory;
  readonly note: NoteAct;
  readonly settings: ClientSettings;
}

/** The query of a try-out. Without a key it is the playground's. */
export const tryOutQuery = z.strictObject({ key: storedText.optional() });

/**
 * The routes under `/admin/try`: requests of clients that an operator sends as one of the keys, whose secret is stored
 * nowhere. They go through the same pipeline as those of the key's holder, and are recorded and charged as these are.
 */
export function createTryOutRoutes({ ports, keysFor, note, settings }: TryOutPorts): Router {
  const generate =
    (protocol: Protocol, path: string): Route =>
    (request, response) => {
      endWithProof(request, response);
      const keyId = readKeyId(request);
      if (isRefusal(keyId)) return keyId;
      const client = new HttpClientConnection(request, response, path, settings, ports.fastPath, keyId);
      const by = actorOf(request);
      const observe: SettledObserver = (_result, summary) => note(entryOf(by, keyId, summary));
      const own = { ...ports, keys: keysFor(by), settled: [...ports.settled, observe] };
      void runTextRequest(protocol, client, own);
      return null;
    };
  return addRoutes(createRouter({ caseSensitive: true }), {
    'POST /try/chat/completions': generate('chat', '/admin/try/chat/completions'),
    'POST /try/responses': generate('responses', '/admin/try/responses'),
    'GET /try/models': (request) => listModelsOf(readKeyId(request), ports),
  });
}

/** What the audit says of a try-out that has ended. The model is one of the config: no text of the request is told. */
function entryOf(by: Actor, keyId: string, summary: ExchangeSummary): AuditEntry {
  const { model, requestId, outcome } = summary;
  const changes = [
    ...(model === null ? [] : [{ field: 'model', before: null, after: model }]),
    { field: 'request', before: null, after: requestId },
  ];
  const entry = keyEntry(by, 'request.try', idIn(keyId), changes);
  return { ...entry, result: outcome === 'client_closed' ? outcome : (codeOf(summary) ?? 'done') };
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

async function listModelsOf(keyId: string | Refusal, ports: Ports): Promise<object | Refusal> {
  if (isRefusal(keyId)) return keyId;
  const operator = { triedKeyId: keyId, authorization: undefined, otherKeyHeader: null };
  const key = await authenticate(operator, ports.keys);
  if (!isRefusal(key)) return listModels(key, ports);
  const isNotMade = keyId === playgroundKeyId && key.code === 'key_not_found';
  return isNotMade ? listModels(newPlaygroundKey(ports.clock.now()), ports) : key;
}
