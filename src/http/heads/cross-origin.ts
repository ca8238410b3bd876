import type { IncomingMessage } from 'node:http';
import { sendNoContent } from '../answers/respond.ts';
import type { Response } from '../router.ts';

/** The headers of answers that a page may read. */
const exposedHeaders = [
  'x-request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-tokens',
  'x-textgate-balance',
  'x-textgate-charge',
  'x-textgate-concurrency-limit',
  'x-textgate-concurrency-in-flight',
  'x-textgate-stripped',
  'x-textgate-replayed',
  'x-textgate-original-request',
];

/** The headers that a page may send: those that are read here, and those that the clients of OpenAI's API add. */
const allowedHeader =
  /^(accept|authorization|content-type|idempotency-key|user-agent|traceparent|tracestate|(openai|x-stainless|x-textgate)-[a-z0-9-]{1,64})$/;

/** How many of the headers that a page asks for are compared; pages of clients ask for about a dozen. */
const maxRequestedHeaders = 64;

/** The methods of all routes, passthrough paths included. */
const allowedMethods = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** How long a browser may remember that it may send requests, in seconds: browsers keep it for 2 hours at most. */
const maxAgeSeconds = 7_200;

/** Every origin, as the config writes it. */
const anyOrigin = '*';

/** Which web pages may call the gateway from browsers, under one config. */
export interface CrossOrigin {
  /** The headers that the answer to a request needs: names and values in turn, as Node takes them. */
  headersFor(request: IncomingMessage): readonly string[];
  /** Answers a browser's question whether a page of a listed origin may send a request; false for any other request. */
  answerPreflight(request: IncomingMessage, response: Response): boolean;
}

/**
 * Compiles the origins of a config; `null` without any. No answer allows credentials: keys are in a header that the page
 * sets itself, and never in a cookie that the browser would add.
 */
export function readCrossOrigin(origins: readonly string[]): CrossOrigin | null {
  if (origins.length === 0) return null;
  const headersOf = originHeaders(origins);
  return {
    headersFor: ({ headers }) => headersOf(headers.origin).headers,
    answerPreflight(request, response) {
      const { origin, 'access-control-request-method': method } = request.headers;
      if (request.method !== 'OPTIONS' || origin === undefined || method === undefined) return false;
      if (!headersOf(origin).isAllowed) return false;
      sendNoContent(response, {
        'access-control-allow-methods': allowedMethods,
        'access-control-allow-headers': allowedOf(request.headers['access-control-request-headers']),
        'access-control-max-age': String(maxAgeSeconds),
      });
      return true;
    },
  };
}

/** The headers for each origin, made once. A cache must not give one origin's answer to another one. */
function originHeaders(origins: readonly string[]) {
  const exposed = ['access-control-expose-headers', exposedHeaders.join(', ')];
  const allow = (origin: string): readonly string[] => ['access-control-allow-origin', origin, ...exposed];
  if (origins.includes(anyOrigin)) {
    const everyone = { isAllowed: true, headers: allow(anyOrigin) };
    return () => everyone;
  }
  const vary = ['vary', 'Origin'];
  const listed = new Map(
    origins.map((origin) => [origin, { isAllowed: true, headers: [...allow(origin), ...vary] }]),
  );
  const other = { isAllowed: false, headers: vary };
  return (origin = '') => listed.get(origin) ?? other;
}

/** Those of the asked headers that a page may send. A browser sends no request that needs another one. */
function allowedOf(asked = ''): string {
  const names = asked.toLowerCase().split(',', maxRequestedHeaders);
  return names
    .map((name) => name.trim())
    .filter((name) => allowedHeader.test(name))
    .join(', ');
}
