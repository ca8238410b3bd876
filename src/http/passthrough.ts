import type { Agent, IncomingMessage, ServerResponse } from 'node:http';
import { Router } from 'express';
import type { RequestHandler } from 'express';
import { createProxyMiddleware, fixRequestBody } from 'http-proxy-middleware';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Ports } from '../pipeline/exchange.ts';
import { runPassthrough } from '../pipeline/run-passthrough.ts';
import type { PassthroughTransport, PassthroughPath } from '../pipeline/run-passthrough.ts';
import { isOversized, letBodyCome, tooLarge } from './body.ts';
import { PassthroughCall } from './passthrough-call.ts';
import type { PassthroughLimits } from './passthrough-call.ts';
import { HttpClientConnection } from './client-connection.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import { requestIdOf } from './request-id.ts';

/** A path that is passed on, and where to. */
export interface Passthrough extends PassthroughPath {
  /** The upstream's address without a path: the client's own path follows it. */
  readonly origin: string;
  /** What the upstream wants with every call: its key, above all. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether link-local addresses are refused. */
  readonly isGuarded: boolean;
  readonly agent: Agent;
  readonly deadlines: Omit<PassthroughLimits, 'maxBodyBytes'>;
}

/** What may be asked of a path. Not TRACE, whose answer would show our key. */
const passedMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** All that an upstream gets to know of a request beside its body: nothing that says who sent it. */
const requestHeaders = new Set([
  'accept',
  'accept-language',
  'content-type',
  'content-length',
  'transfer-encoding',
]);

/** The middlewares of a process, by what they need to know: each keeps a hold on the server that it first served. */
export type PassthroughProxies = Map<string, PassthroughProxy>;

/** A middleware for one place, and the calls that are on their way through it. */
interface PassthroughProxy {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly calls: WeakMap<IncomingMessage, PassthroughCall>;
}

/** The paths that are passed on verbatim. They keep their own names, beside those under `/v1`. */
export function createPassthroughRouter(
  paths: readonly Passthrough[],
  proxies: PassthroughProxies,
  ports: Ports,
  prepare: RequestHandler,
  maxBodyBytes: number,
): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const passthrough of paths) {
    const open = createForwarder(passthrough, proxies, maxBodyBytes, ports.clock);
    router.all(passthrough.path, prepare, (request, response) => {
      if (!passedMethods.has(request.method))
        return methodNotAllowed([...passedMethods].join(', '))(request, response, () => {});
      const client = new HttpClientConnection(requestIdOf(response), request, response, maxBodyBytes);
      void runPassthrough(passthrough, client, open(request, response), ports);
    });
  }
  return router;
}

/**
 * http-proxy-middleware carries the request. The answer is carried here: its end must wait for the record, and when it
 * breaks it must break for the client, where the middleware's own handler would write an error into it and end it well.
 */
function createProxy({ origin, agent }: Passthrough): PassthroughProxy {
  const calls = new WeakMap<IncomingMessage, PassthroughCall>();
  const handle = createProxyMiddleware({
    target: origin,
    changeOrigin: true,
    agent,
    selfHandleResponse: true,
    on: {
      proxyReq(upstream, request) {
        calls.get(request)?.sent(upstream, request);
        fixRequestBody(upstream, request);
      },
      proxyRes: (answer, request) => calls.get(request)?.answered(answer),
      error: (error, request) => calls.get(request)?.failed(error),
      econnreset: (error, request) => calls.get(request)?.failed(error),
    },
  });
  return { handle, calls };
}

function createForwarder(
  passthrough: Passthrough,
  proxies: PassthroughProxies,
  maxBodyBytes: number,
  clock: Clock,
): (request: IncomingMessage, response: ServerResponse) => PassthroughTransport {
  const { origin, isGuarded, headers, deadlines } = passthrough;
  const place = `${isGuarded ? 'guarded' : 'open'} ${origin}`;
  const proxy = proxies.get(place) ?? createProxy(passthrough);
  proxies.set(place, proxy);
  const limits = { ...deadlines, maxBodyBytes };
  return (request, response) => ({
    requestFault: findTargetFault(request) ?? findBodyFault(request, maxBodyBytes),
    forward: (trace, signal, onHead) =>
      new Promise((resolve) => {
        const sent = { 'accept-encoding': 'identity', 'user-agent': 'textgate', ...headers, ...trace };
        proxy.calls.set(request, new PassthroughCall(response, sent, limits, clock, signal, onHead, resolve));
        for (const name of Object.keys(request.headers))
          if (!requestHeaders.has(name)) delete request.headers[name];
        request.url = passthrough.path + queryOf(request);
        letBodyCome(request, response);
        void proxy.handle(request, response);
      }),
  });
}

/** What can be told of a body from the head: its framing must be one that everybody reads the same way. */
function findBodyFault(request: IncomingMessage, maxBodyBytes: number): Refusal | null {
  const encoding = request.headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return refuse('invalid_value', "Send the body with a length, or with 'Transfer-Encoding: chunked'.");
  return isOversized(request, maxBodyBytes) ? tooLarge(maxBodyBytes) : null;
}

/** The target of a request to a proxy is a whole address, which has to be one: nothing is made of a broken one. */
function findTargetFault({ url = '/' }: IncomingMessage): Refusal | null {
  if (url.startsWith('/') || URL.canParse(url)) return null;
  return refuse('invalid_value', 'The address in the request line is not a valid URL.');
}

/** The query that was asked for, without a fragment: that is not meant for servers. */
function queryOf({ url = '' }: IncomingMessage): string {
  const [target = ''] = url.split('#', 1);
  const start = target.indexOf('?');
  return start === -1 ? '' : target.slice(start);
}
