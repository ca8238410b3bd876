import { readingAlone } from '../fallback-handlers.ts';
import { unknownHost, pageHeaders } from '../pages/own-pages.ts';
import type { OwnPages } from '../pages/own-pages.ts';
import { sendBody, sendNotModified, sendRedirect, sendRefusal } from '../answers/respond.ts';
import { createRouter, pathOf } from '../router.ts';
import type { Request, RequestHandler, Response, Router } from '../router.ts';
import type { ConsoleFiles } from './open-files.ts';
import { createSessionRoutes } from './session-routes.ts';
import type { SessionPorts } from './session-routes.ts';

/** How long a browser may keep a file whose path has its version, in seconds: a year. */
const keptSeconds = 31_536_000;

/** What the console's routes need. */
export interface ConsolePorts extends SessionPorts {
  readonly console: ConsoleFiles;
}

/** The routes of the console: its files, which need no token, and its sessions. */
export function createConsoleRoutes(ports: ConsolePorts): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  router.use('/console', protect(ports.pages));
  // Relative links lead nowhere without the slash.
  router.get('/console', (_request, response) => sendRedirect(response, 308, 'console/'));
  router.use(createSessionRoutes(ports));
  router.get(['/console/', '/console/*path'], (request, response, next) =>
    answerFile(request, response, next, ports.console),
  );
  router.all(['/console/', '/console/*path'], readingAlone);
  return router;
}

/** Gives every answer the headers of pages, and refuses names that a foreign page made to resolve to this address. */
function protect(pages: OwnPages): RequestHandler {
  return (request, response, next) => {
    for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value);
    if (pages.isOwnHost(request)) next();
    else sendRefusal(response, unknownHost());
  };
}

async function answerFile(
  request: Request,
  response: Response,
  next: (error?: unknown) => void,
  files: ConsoleFiles,
): Promise<void> {
  const found = await files.find(pathOf(request.url).slice('/console/'.length));
  if (found === null) return next();
  const { type, body, etag } = found.file;
  const headers = {
    etag,
    'cache-control': found.isImmutable ? `public, max-age=${keptSeconds}, immutable` : 'no-cache',
  };
  if (isKnown(request.headers['if-none-match'], etag)) sendNotModified(response, headers);
  else sendBody(response, 200, body, { ...headers, 'content-type': type });
}

/** Whether a browser has a version; a proxy that compresses answers may have made the tag a weak one. */
function isKnown(tags: string | undefined, etag: string): boolean {
  return tags?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag) === true;
}
