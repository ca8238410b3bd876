import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { FetchRequest } from './fetch-request.ts';
import { FetchResponse } from './fetch-response.ts';
import type { NodeHandler } from '../standalone.ts';

/**
 * Answers a request of the Fetch API without a socket. Resolves with the head of the answer. The client has left when
 * the request's signal is raised or the answer's body is cancelled; before the head, the signal's reason rejects.
 */
export async function answerFetch(source: Request, serve: NodeHandler): Promise<Response> {
  const { signal } = source;
  signal.throwIfAborted();
  const request = new FetchRequest(source);
  // The routes see by the state of the request that its body was consumed before them.
  if (request.isBodyTaken) await once(request.resume(), 'end');
  const response = new FetchResponse(request);
  const leave = (): void => void response.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', leave);
  response.once('close', () => {
    signal.removeEventListener('abort', leave);
    request.destroy();
  });
  serve(request, response as unknown as ServerResponse);
  try {
    return await response.opened;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
