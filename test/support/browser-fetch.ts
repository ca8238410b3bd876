/** Headers that a page may send without asking, and those of answers that it may read without being allowed to. */
const plainRequestHeaders = new Set(['accept', 'accept-language', 'content-language']);
const plainAnswerHeaders = new Set([
  'cache-control',
  'content-language',
  'content-length',
  'content-type',
  'expires',
  'last-modified',
  'pragma',
]);

/** What a page of one origin asked a server before its requests. */
export interface Preflight {
  readonly status: number;
  /** The headers that the page wanted to send, sorted. */
  readonly asked: readonly string[];
}

/**
 * A `fetch` as browsers have it for pages of an origin, by the rules of the Fetch standard for requests to other origins:
 * it asks before each request that is not a plain one, rejects what the server does not allow, and hides the headers of
 * answers that are not exposed.
 */
export function browserFetch(origin: string): { readonly fetch: typeof fetch; readonly asked: Preflight[] } {
  const asked: Preflight[] = [];
  return {
    asked,
    async fetch(input, init = {}) {
      const request = new Request(input, init);
      const names = [...request.headers.keys()].filter((name) => !isPlain(name, request.headers));
      if (names.length > 0 || !['GET', 'HEAD', 'POST'].includes(request.method))
        asked.push(await askBefore(request, names, origin));
      const response = await fetch(input, { ...init, headers: withOrigin(request.headers, origin) });
      expectAllowed(response, origin);
      return hideHeaders(response);
    },
  };
}

function isPlain(name: string, headers: Headers): boolean {
  if (name !== 'content-type') return plainRequestHeaders.has(name);
  return /^(text\/plain|multipart\/form-data|application\/x-www-form-urlencoded)/.test(
    headers.get(name) ?? '',
  );
}

async function askBefore(
  { url, method }: Request,
  names: readonly string[],
  origin: string,
): Promise<Preflight> {
  const asked = names.toSorted();
  const response = await fetch(url, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      ...(asked.length === 0 ? {} : { 'access-control-request-headers': asked.join(',') }),
    },
  });
  expectAllowed(response, origin);
  if (!response.ok) throw new TypeError(`blocked: the preflight has status ${response.status}`);
  const methods = listOf(response, 'access-control-allow-methods');
  if (!['GET', 'HEAD', 'POST'].includes(method) && !methods.has(method.toLowerCase()))
    throw new TypeError(`blocked: the method ${method} is not allowed`);
  const allowed = listOf(response, 'access-control-allow-headers');
  for (const name of asked)
    if (!allowed.has(name)) throw new TypeError(`blocked: the header ${name} is not allowed`);
  return { status: response.status, asked };
}

function expectAllowed({ headers }: Response, origin: string): void {
  const allowed = headers.get('access-control-allow-origin');
  if (allowed !== '*' && allowed !== origin) throw new TypeError(`blocked: the answer is for ${allowed}`);
}

function hideHeaders(response: Response): Response {
  const exposed = listOf(response, 'access-control-expose-headers');
  const headers = new Headers(
    [...response.headers].filter(([name]) => plainAnswerHeaders.has(name) || exposed.has(name)),
  );
  return new Response(response.body, { status: response.status, headers });
}

function withOrigin(headers: Headers, origin: string): Headers {
  const all = new Headers(headers);
  all.set('origin', origin);
  return all;
}

function listOf({ headers }: Response, name: string): ReadonlySet<string> {
  return new Set(
    (headers.get(name) ?? '')
      .toLowerCase()
      .split(',')
      .map((part) => part.trim()),
  );
}
