import { z } from 'zod';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Ports } from '../pipeline/ports.ts';
import { readResponse, runResumedStream } from '../pipeline/resume-response.ts';
import { sendBody, sendRefusal } from './answers/respond.ts';
import { check, pathIdOf, readQuery } from './checked-input.ts';
import { HttpClientConnection, authenticateRequest } from './http-client-connection.ts';
import type { ClientSettings } from './http-client-connection.ts';
import { addRoutes } from './route-table.ts';
import { createRouter } from './router.ts';
import type { Request, Response, Router } from './router.ts';

const eventProblem = 'expected the number of an event, from 0';

/** What is asked of a response: its object, or its events, all of them or those behind one. */
export const responseQuery = z.object({
  stream: z.enum(['true', 'false'], "expected 'true' or 'false'").default('false'),
  starting_after: z
    .string(eventProblem)
    .regex(/^\d{1,15}$/, eventProblem)
    .optional(),
});

/** The routes of responses that are kept in memory: to read one, to go on with its stream, and to cancel it. */
export function createResponseRoutes(ports: Ports, settings: ClientSettings): Router {
  const readers = { keys: ports.keys, addresses: settings.addresses };
  const answer = async (
    request: Request,
    response: Response,
    read: (responseId: string, key: ApiKey) => string | Refusal | Promise<string | Refusal>,
  ): Promise<null> => {
    const key = await authenticateRequest(request, readers);
    const found = isRefusal(key) ? key : await read(pathIdOf(request), key);
    if (isRefusal(found)) sendRefusal(response, found);
    else sendBody(response, 200, found);
    return null;
  };
  return addRoutes(createRouter({ caseSensitive: true }), {
    'GET, HEAD /v1/responses/:id': (request, response) => {
      const query = readEventQuery(request);
      // A head alone has nothing of a stream.
      if (isRefusal(query) || query.stream === 'false' || request.method === 'HEAD')
        return answer(request, response, (id, key) =>
          isRefusal(query) ? query : readResponse(id, 'read', key, ports),
        );
      const after = Number(query.starting_after ?? -1);
      const client = new HttpClientConnection(
        request,
        response,
        '/v1/responses/:id',
        settings,
        ports.fastPath,
      );
      void runResumedStream(pathIdOf(request), after, client, ports);
      return null;
    },
    'POST /v1/responses/:id/cancel': (request, response) =>
      answer(request, response, (id, key) => readResponse(id, 'cancel', key, ports)),
  });
}

/** Reads what is asked of a response; the query may have more, which clients of OpenAI's own service send. */
function readEventQuery(request: Request): z.output<typeof responseQuery> | Refusal {
  const query = check(readQuery(request, responseQuery), responseQuery);
  if (isRefusal(query) || query.stream === 'true' || query.starting_after === undefined) return query;
  return refuse(
    'invalid_value',
    "Invalid 'starting_after': it says where a stream goes on: send stream=true, too.",
    {
      param: 'starting_after',
    },
  );
}
