import type { Agent, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Forwarding } from '../../domain/ports/upstreams.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Ports } from '../../pipeline/ports.ts';
import { runPassthrough } from '../../pipeline/run-passthrough.ts';
import type { PassthroughTransport, PassthroughPath } from '../../pipeline/run-passthrough.ts';
import { queryOf } from '../checked-input.ts';
import { sizeFault, startBody, takeReadBody } from '../body.ts';
import { PassthroughCall } from './passthrough-call.ts';
import type { PassthroughLimits } from './passthrough-call.ts';
import { HttpClientConnection } from '../http-client-connection.ts';
import type { ClientSettings } from '../http-client-connection.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { createRouter } from '../router.ts';
import type { RequestHandler, Router } from '../router.ts';

/** A passthrough path and its upstream. */
export interface Passthrough extends PassthroughPath {
  /** The upstream's address without a path: the client's path is appended. */
  readonly origin: string;
  /** Reads the headers of a call, above all the upstream's key, which may be replaced while the service runs. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Notes that the upstream refused its key; `null` where that has no effect. */
  readonly keyRefused: (() => void) | null;
  /** How requests are sent to a proxy that reads them; `null` where none does. */
  readonly forwarding: Forwarding | null;
  readonly agent: UpstreamAgent;
  readonly deadlines: Omit<PassthroughLimits, 'maxBodyBytes'>;
}

/** An agent that opens its connections with `open`, which may be replaced. */
interface UpstreamAgent extends Agent {
  open: (callback: (error: Error | null, socket: Socket | null) => void) => void;
}

/** The methods that pass through. Not TRACE, whose answer would contain the upstream's key. */
const passthroughMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The request headers that pass through: none of them identifies the client. */
const passthroughRequestHeaders = new Set([
  'accept',
  'accept-language',
  'content-type',
  'content-length',
  'transfer-encoding',
]);

/**
 * The passthrough middlewares of a process by upstream. They outlive a reload of the config, because each of them keeps
 * a reference to the first server that it served.
 */
export type PassthroughMiddlewares = Map<string, PassthroughMiddleware>;

/** The middleware for one upstream, and the calls in progress through it. */
interface PassthroughMiddleware {
  readonly agent: UpstreamAgent;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly calls: WeakMap<IncomingMessage, PassthroughCall>;
}

/** Creates the routes of the passthrough paths. They keep their names; they are not under `/v1`. */
export function createPassthroughRouter(
  paths: readonly Passthrough[],
  middlewares: PassthroughMiddlewares,
  ports: Ports,
  prepare: RequestHandler,
  settings: ClientSettings,
): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  for (const passthrough of paths) {
    const open = createTransport(passthrough, middlewares, settings.maxBodyBytes, ports.clock);
    router.all(passthrough.path, prepare, (request, response) => {
      if (!passthroughMethods.has(request.method))
        return methodNotAllowed([...passthroughMethods].join(', '))(request, response, () => {});
      const client = new HttpClientConnection(request, response, passthrough.path, settings, false);
      void runPassthrough(passthrough, client, open(request, response), ports);
    });
  }
  return router;
}

/**
 * http-proxy-middleware sends the request, and `PassthroughCall` the answer. The answer's end must wait for the
 * record, and an answer that breaks off must break off for the client, too: the middleware's own handler would write an
 * error into it and end it as if it were complete. The package is loaded here, because most configs pass no path on.
 */
function createMiddleware({ origin, agent }: Passthrough): PassthroughMiddleware {
  const calls = new WeakMap<IncomingMessage, PassthroughCall>();
  const loaded = import('http-proxy-middleware').then(({ createProxyMiddleware }) =>
    createProxyMiddleware({
      target: origin,
      changeOrigin: true,
      agent,
      selfHandleResponse: true,
      on: {
        proxyReq: (upstream, request) => calls.get(request)?.sent(upstream, request),
        proxyRes: (answer, request) => calls.get(request)?.answered(answer),
        error: (error, request) => calls.get(request)?.failed(error),
        econnreset: (error, request) => calls.get(request)?.failed(error),
      },
    }),
  );
  // A package that can't be loaded fails each call rather than the process.
  loaded.catch(() => {});
  return {
    agent,
    handle(request, response) {
      loaded
        .then((handle) => handle(request, response))
        .catch((error: unknown) => calls.get(request)?.failed(error));
    },
    calls,
  };
}

function createTransport(
  passthrough: Passthrough,
  middlewares: PassthroughMiddlewares,
  maxBodyBytes: number,
  clock: Clock,
): (request: IncomingMessage, response: ServerResponse) => PassthroughTransport {
  const { origin, headers, keyRefused, deadlines, forwarding } = passthrough;
  const upstream = `${origin} ${passthrough.upstream}`;
  const middleware = middlewares.get(upstream) ?? createMiddleware(passthrough);
  middlewares.set(upstream, middleware);
  // The middleware is older than a config that was reloaded, and opens connections as the new one says.
  middleware.agent.open = passthrough.agent.open;
  const limits = { ...deadlines, maxBodyBytes };
  return (request, response) => {
    const taken = takeReadBody(request, maxBodyBytes);
    const readBody = isRefusal(taken) ? null : taken;
    return {
      requestFault:
        findTargetFault(request) ?? findBodyFault(request, maxBodyBytes) ?? (isRefusal(taken) ? taken : null),
      forward: (trace, signal, onHead, onAnswered) =>
        new Promise((resolve) => {
          const sent = { 'accept-encoding': 'identity', 'user-agent': 'textgate', ...headers(), ...trace };
          middleware.calls.set(
            request,
            new PassthroughCall(response, {
              headers: sent,
              forwarding,
              readBody,
              limits,
              clock,
              signal,
              onHead,
              onAnswered,
              resolve(outcome) {
                if (outcome === 401) keyRefused?.();
                resolve(outcome);
              },
            }),
          );
          keepPassthroughHeaders(request, readBody);
          request.url = passthrough.path + queryOf(request);
          startBody(request, response);
          middleware.handle(request, response);
        }),
    };
  };
}

/** Removes the headers that do not pass through, and sets the length of a body that was read before. */
function keepPassthroughHeaders({ headers }: IncomingMessage, readBody: Uint8Array | null): void {
  for (const name of Object.keys(headers)) if (!passthroughRequestHeaders.has(name)) delete headers[name];
  if (readBody === null) return;
  delete headers['transfer-encoding'];
  headers['content-length'] = String(readBody.length);
}

/** Checks the body by the head: all parsers must agree on its framing, and it must not be too large. */
function findBodyFault(request: IncomingMessage, maxBodyBytes: number): Refusal | null {
  const encoding = request.headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return refuse('invalid_value', "Send the body with a length, or with 'Transfer-Encoding: chunked'.");
  return sizeFault(request, maxBodyBytes);
}

/** Checks the target of a request as clients of proxies send it, with a whole address: a broken one can't be parsed. */
function findTargetFault({ url = '/' }: IncomingMessage): Refusal | null {
  if (url.startsWith('/') || URL.canParse(url)) return null;
  return refuse('invalid_value', 'The address in the request line is not a valid URL.');
}
