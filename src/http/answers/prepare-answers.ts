import type { IncomingMessage } from 'node:http';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { CrossOrigin } from '../heads/cross-origin.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import { OwnResponse, noSniff } from './own-response.ts';
import { assignRequestId, presentRequestId, requestIdHeader, requestIdOf } from '../heads/request-id.ts';
import { sendRefusal } from './respond.ts';
import type { UnreadWatch } from '../connections/unread-watch.ts';
import type { Response } from '../router.ts';

/** The first handler of every request, in a router and in front of one. */
export type Prepare = (request: IncomingMessage, response: Response, next: () => void) => void;

/** Node warns of a leak above ten listeners; a passthrough answer has a few more of its own. */
const maxListeners = 20;

/**
 * The first handler of every request: assigns its id before anything can fail, forbids browsers to guess the type of
 * the answer, and starts the watch for an answer that the client does not read. An app may send requests to a gateway
 * that it has closed: they are refused here, since the routes would report a database that can't be used. With
 * `crossOrigin`, every answer says which web pages may read it, and a browser's question before a request is answered here.
 */
export function prepareAnswers(
  nextId: NextId,
  watchUnread: UnreadWatch,
  isClosed: () => boolean,
  crossOrigin: CrossOrigin | null = null,
): Prepare {
  return (request, response, next) => {
    if (assignRequestId(response, nextId)) {
      response.setMaxListeners(maxListeners);
      if (response instanceof OwnResponse) {
        if (crossOrigin !== null) response.crossOrigin = crossOrigin.headersFor(request);
      } else {
        response.setHeader(requestIdHeader, presentRequestId(requestIdOf(response)));
        response.setHeader(...noSniff);
        if (crossOrigin !== null) setHeaders(response, crossOrigin.headersFor(request));
      }
      watchUnread(response);
    }
    if (isClosed()) sendRefusal(response, gatewayClosed());
    else if (crossOrigin?.answerPreflight(request, response) !== true) next();
  };
}

/** Sets headers on an app's own response. What the app has set in `vary` stays. */
function setHeaders(response: Response, headers: readonly string[]): void {
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = headers.slice(at, at + 2);
    if (name === 'vary') response.appendHeader(name, value);
    else response.setHeader(name, value);
  }
}

/** The refusal of whatever is asked of a gateway after its end. */
export function gatewayClosed(): Refusal {
  return refuse('draining', 'This gateway is closed. Try again: another instance may answer.');
}
