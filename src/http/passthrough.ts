import type { Agent, IncomingMessage, ServerResponse } from 'node:http';
import { Router } from 'express';
import { createProxyMiddleware, fixRequestBody } from 'http-proxy-middleware';
import type { Clock } from '../domain/ports.ts';
import type { Ports } from '../pipeline/exchange.ts';
import { runPassthrough } from '../pipeline/run-passthrough.ts';
import type { Forwarding, PassthroughPath } from '../pipeline/run-passthrough.ts';
import { isOversized, letBodyCome, tooLarge } from './body.ts';
import { ForwardedCall } from './forwarded-call.ts';
import type { ForwardDeadlines } from './forwarded-call.ts';
import { HttpClient } from './http-client.ts';
import { idOf, identify } from './refusal-response.ts';

/** A path that is passed on, and where to. */
export interface Passthrough extends PassthroughPath {
  /** The upstream's address without a path: the client's own path follows it. */
  readonly origin: string;
  /** What the upstream wants with every call: its key, above all. */
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
  readonly deadlines: ForwardDeadlines;
}

/** All that an upstream gets to know of a request beside its body: nothing that says who sent it. */
const requestHeaders = new Set([
  'accept',
  'accept-language',
  'content-type',
  'content-length',
  'transfer-encoding',
]);

/** The paths that are passed on verbatim. They keep their own names, beside those under `/v1`. */
export function createPassthroughRouter(
  paths: readonly Passthrough[],
  ports: Ports,
  nextId: () => string,
  maxBodyBytes: number,
): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const passthrough of paths) {
    const open = createForwarder(passthrough, maxBodyBytes, ports.clock);
    router.all(passthrough.path, identify(nextId), (request, response) => {
      const client = new HttpClient(idOf(response), request, response, maxBodyBytes, ports.clock);
      void runPassthrough(passthrough, client, open(request, response), ports);
    });
  }
  return router;
}

/**
 * http-proxy-middleware carries the request. The answer is carried here: its end must wait for the record, and when it
 * breaks it must break for the client, where the middleware's own handler would write an error into it and end it well.
 */
function createForwarder(
  { origin, headers, agent, deadlines }: Passthrough,
  maxBodyBytes: number,
  clock: Clock,
): (request: IncomingMessage, response: ServerResponse) => Forwarding {
  const calls = new WeakMap<IncomingMessage, ForwardedCall>();
  const proxy = createProxyMiddleware({
    target: origin,
    changeOrigin: true,
    agent,
    headers: { 'accept-encoding': 'identity', 'user-agent': 'textgate', ...headers },
    selfHandleResponse: true,
    on: {
      proxyReq(upstream, request) {
        fixRequestBody(upstream, request);
        calls.get(request)?.sent(upstream, request, maxBodyBytes);
      },
      proxyRes: (answer, request) => calls.get(request)?.answered(answer),
      error: (error, request) => calls.get(request)?.failed(error),
      econnreset: (error, request) => calls.get(request)?.failed(error),
    },
  });
  return (request, response) => ({
    bodyFault: isOversized(request, maxBodyBytes) ? tooLarge(maxBodyBytes) : null,
    forward: (trace, signal, onHead) =>
      new Promise((resolve) => {
        calls.set(request, new ForwardedCall(response, deadlines, clock, signal, onHead, resolve));
        for (const name of Object.keys(request.headers))
          if (!requestHeaders.has(name)) delete request.headers[name];
        Object.assign(request.headers, trace);
        letBodyCome(request, response);
        void proxy(request, response);
      }),
  });
}
