import type { ClientAddresses } from '../heads/client-addresses.ts';
import { schemeOf } from '../heads/client-scheme.ts';
import { pageHeaders } from '../pages/page-headers.ts';
import { sendBody } from '../answers/respond.ts';
import { prefers } from '../router.ts';
import type { Request, RequestHandler } from '../router.ts';

/** What the page at the root says beside the address, under the config in force. */
export interface FrontDoor {
  /** Where to ask for a key; `null` where the config does not say it. */
  readonly contact: string | null;
  readonly addresses: ClientAddresses;
}

/**
 * Answers a person who opens the address of the listener for clients in a browser: what this is, how to call it and where
 * to ask for a key. It stands behind all routes, so it costs them nothing; programs get `otherwise`, as everywhere else.
 */
export function answerFrontDoor(
  basePath: string,
  door: () => FrontDoor,
  otherwise: RequestHandler,
): RequestHandler {
  const paths = new Set([`${basePath}/`, basePath === '' ? '/' : basePath]);
  return (request, response, next) => {
    const [path = ''] = request.url.split('?', 1);
    const isAsked = request.method === 'GET' && paths.has(path);
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
