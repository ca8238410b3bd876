import { sendAnswer, sendBody } from '../answers/respond.ts';
import type { FindDirect } from '../direct-routes.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import type { ClientAddresses } from '../heads/client-addresses.ts';
import { schemeOf } from '../heads/client-scheme.ts';
import { unknownUrlBelow } from '../heads/unknown-url.ts';
import { pageHeaders } from '../pages/own-pages.ts';
import { createRouter, pathOf, prefers } from '../router.ts';
import type { RequestHandler, Request } from '../router.ts';
import type { RunRoutes } from '../standalone.ts';

/**
 * Puts the routes for clients below a base path (empty for none), and probes and a page for people beside them, which an app
 * that mounts the routes has of its own: in the form that a listener takes them.
 */
export function createPublicPaths(
  basePath: string,
  routes: RunRoutes,
  findDirect: FindDirect,
  isReady: () => Promise<boolean>,
  door: () => FrontDoor,
) {
  const router = createRouter({ caseSensitive: true });
  router.use(answerProbes(basePath, isReady));
  if (basePath === '') router.use(routes);
  else router.use(basePath, routes);
  const findBelow: FindDirect = (method, target) =>
    target.startsWith(basePath) ? findDirect(method, target.slice(basePath.length)) : undefined;
  return {
    routes: router,
    findDirect: basePath === '' ? findDirect : findBelow,
    unknownUrl: answerFrontDoor(basePath, door, unknownUrlBelow(basePath)),
  };
}

/** The paths of probes, which balancers call without a key. */
const probePaths = new Set(['/healthz', '/readyz']);

/**
 * Answers the probes of the listener for clients, which say nothing but whether the process lives, and whether requests
 * should be sent to it: at the root, whose path a balancer knows, and below the base path, to which a proxy may send all
 * that it gets.
 */
export function answerProbes(basePath: string, isReady: () => Promise<boolean>): RequestHandler {
  const refuseMethod = methodNotAllowed('GET, HEAD');
  const isReadyNow = shareRunning(isReady);
  return (request, response, next) => {
    const path = pathOf(request.url);
    const below = path.startsWith(basePath) ? path.slice(basePath.length) : path;
    const probe = probePaths.has(path) ? path : below;
    if (!probePaths.has(probe)) return next();
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(request, response, next);
    if (probe === '/healthz') return sendAnswer(response, 200, { status: 'ok' });
    return isReadyNow().then((ready) =>
      sendAnswer(response, ready ? 200 : 503, { status: ready ? 'ready' : 'not ready' }),
    );
  };
}

/**
 * Lets calls that come while one is running share its result: anyone may probe, and a check asks the database, and all
 * workers while it fails.
 */
function shareRunning<Result>(call: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | null = null;
  return () => (running ??= call().finally(() => (running = null)));
}

/** What the page at the root says beside the address, under the config in force. */
interface FrontDoor {
  /** Where to ask for a key; `null` where the config does not say it. */
  readonly contact: string | null;
  readonly addresses: ClientAddresses;
}

/**
 * Answers a person who opens the address of the listener for clients in a browser: what this is, how to call it and where
 * to ask for a key. It stands behind all routes, so it costs them nothing; programs get `otherwise`, as everywhere else.
 */
function answerFrontDoor(basePath: string, door: () => FrontDoor, otherwise: RequestHandler): RequestHandler {
  const paths = new Set([`${basePath}/`, basePath === '' ? '/' : basePath]);
  return (request, response, next) => {
    const isAsked = request.method === 'GET' && paths.has(pathOf(request.url));
    if (!isAsked || !prefers(request, 'text/html', 'application/json'))
      return otherwise(request, response, next);
    const { contact, addresses } = door();
    sendBody(response, 200, writePage(baseUrl(request, basePath, addresses), contact), {
      ...pageHeaders,
      'content-type': 'text/html; charset=utf-8',
      vary: 'accept',
    });
  };
}

/** The address that the client called, as it has to write it into its own settings. */
function baseUrl(request: Request, basePath: string, addresses: ClientAddresses): string {
  const { host = 'localhost' } = request.headers;
  return `${schemeOf(request, addresses)}://${host}${basePath}/v1`;
}

function writePage(url: string, contact: string | null): string {
  const address = escapeHtml(url);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>A gateway for language models</title>
</head>
<body>
<h1>A gateway for language models</h1>
<p>Programs send requests for text to this address, in the protocols of OpenAI: Chat Completions and Responses. There is
nothing to click here.</p>
<h2>How to call it</h2>
<p>Base URL for client libraries: <code>${address}</code></p>
<p>With a key, this lists what it may be used for:</p>
<pre>curl ${address}/models -H "Authorization: Bearer $API_KEY"</pre>
<h2>Where to get a key</h2>
<p>${contact === null ? 'From the operator of this service.' : writeContact(contact)}</p>
</body>
</html>
`;
}

/** An address of the web or of mail becomes a link; everything else stays text, such as an address with a script. */
function writeContact(contact: string): string {
  const text = escapeHtml(contact);
  if (!/^(https?:\/\/|mailto:)\S+$/i.test(contact)) return text;
  return `<a href="${text}" rel="noreferrer">${text.replace(/^mailto:/i, '')}</a>`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
