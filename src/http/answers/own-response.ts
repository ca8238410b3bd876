import { ServerResponse } from 'node:http';
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http';
import { presentRequestId, requestId, requestIdHeader } from '../heads/request-id.ts';

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Forbids browsers to guess the type of an answer. */
export const noSniff = ['x-content-type-options', 'nosniff'] as const;

/**
 * An answer of our own listeners. The headers that every answer has are written with the others, in one list, from which
 * Node makes the head without objects of its own for each. In an app that mounts a router they are set on the app's
 * response instead, where its other middleware can read them.
 */
export class OwnResponse extends ServerResponse {
  [requestId]: string | null = null;
  /** The `keep-alive` header; `null` for that of Node's server. */
  keepAlive: string | null = null;
  /** The headers of `CrossOrigin`, names and values in turn; `null` where no web page may call the gateway. */
  crossOrigin: readonly string[] | null = null;
  /** Called when the client closes its side of the connection after the head of this answer was sent. */
  onHalfClosed: (() => void) | null = null;

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    if (typeof reason === 'string') return super.writeHead(status, reason, headers);
    // A list is Node's own answer to a request that reaches no route.
    return super.writeHead(
      status,
      Array.isArray(reason) ? [...reason, ...noSniff] : this.#complete(reason ?? {}),
    );
  }

  #complete(headers: OutgoingHttpHeaders): OutgoingHttpHeader[] {
    const all: OutgoingHttpHeader[] = [];
    const id = this[requestId];
    if (this.keepAlive !== null) all.push('keep-alive', this.keepAlive);
    if (id !== null && headers[requestIdHeader] === undefined)
      all.push(requestIdHeader, presentRequestId(id), ...noSniff);
    if (this.crossOrigin !== null) all.push(...this.crossOrigin);
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) all.push(name, value);
    }
    return all;
  }
}
