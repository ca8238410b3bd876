import type { NextId } from '../domain/ports/clock.ts';
import { assignRequestId } from './request-id.ts';
import type { UnreadWatch } from './connections/unread-watch.ts';
import type { RequestHandler } from './router.ts';

/** Node warns of a leak above ten listeners; a passthrough answer has a few more of its own. */
const maxListeners = 20;

/**
 * The first handler of every request: assigns its id before anything can fail, forbids browsers to guess the type of
 * the answer, and starts the watch for an answer that the client does not read.
 */
export function prepareAnswers(nextId: NextId, watchUnread: UnreadWatch): RequestHandler {
  return (_request, response, next) => {
    if (assignRequestId(response, nextId)) {
      response.setHeader('x-content-type-options', 'nosniff');
      response.setMaxListeners(maxListeners);
      watchUnread(response);
    }
    next();
  };
}
