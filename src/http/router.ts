import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';

/** A request as every host provides it, and what a router adds: nothing that only an Express app would add. */
export type Request = IncomingMessage & {
  /** The target of the request, with the path below which the router is mounted. */
  readonly originalUrl: string;
  /** The parameters of the matched path. */
  readonly params: Readonly<Record<string, string | string[]>>;
  readonly method: string;
  readonly url: string;
};

/** A response as every host provides it. */
export type Response = ServerResponse;

export type RequestHandler = (
  request: Request,
  response: Response,
  next: (error?: unknown) => void,
) => unknown;

/** Answers an error that a handler threw, or hands it on. */
export type ErrorRequestHandler = (
  error: unknown,
  request: IncomingMessage,
  response: Response,
  next: (error?: unknown) => void,
) => void;

/** How a router treats paths. */
interface RouterOptions {
  /** Whether `/A` and `/a` are different paths. */
  readonly caseSensitive?: boolean;
  /** Whether `/a` and `/a/` are different paths. */
  readonly strict?: boolean;
}

type AddRoute = (path: string | readonly string[], ...handlers: readonly RequestHandler[]) => Router;

/** Express's router, with handlers that work in any host: under `node:http` there is no Express app. */
export interface Router {
  (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void;
  use(path: string | readonly string[], ...handlers: readonly RequestHandler[]): this;
  use(...handlers: readonly (RequestHandler | ErrorRequestHandler)[]): this;
  readonly all: AddRoute;
  readonly get: AddRoute;
  readonly head: AddRoute;
  readonly post: AddRoute;
  readonly patch: AddRoute;
  readonly delete: AddRoute;
}

/** Creates a router. */
export function createRouter(options: RouterOptions = {}): Router {
  return express.Router(options) as unknown as Router;
}

/** Whether the request's `Accept` header prefers one type, such as `csv`, to another. */
export function prefers(request: Request, type: string, other: string): boolean {
  // Express's method reads nothing but the headers.
  return express.request.accepts.call(request as express.Request, other, type) === type;
}

/** The path of a target, without its query, which may hold secrets. */
export function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}
