import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { adminTokenFile, readAdminToken } from '../config/admin-token.ts';
import { readVariable } from '../config/environment.ts';
import { defaultAdminPort, defaultHost } from '../config/schema.ts';

/** How long the command line waits for the gateway, in milliseconds. */
const timeoutMs = 10_000;

/**
 * Calls the admin listener; returns the parsed body, or throws an `Error` that says what to do. CSV comes as its text,
 * with the cursor of the next page.
 */
export async function callAdmin(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body?: object,
  accept = 'application/json',
): Promise<unknown> {
  const { url, token } = findGateway();
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept },
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw unreachable(url);
  });
  if (response.ok && accept === 'text/csv')
    return { csv: await response.text(), next: response.headers.get('x-textgate-next') };
  const answer = (await response.json()) as AdminError;
  if (!response.ok) throw refused(response.status, answer);
  return answer;
}

/**
 * Asks the admin listener for something that may take it minutes, and waits as long as it takes: `fetch` gives up after
 * five. Resolves with the answer once it begins; throws as `callAdmin` does.
 */
export async function openAdmin(path: string): Promise<IncomingMessage> {
  const { url, token } = findGateway();
  const { request } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url + path, { headers: { authorization: `Bearer ${token}` } }, resolve)
      .on('error', () => reject(unreachable(url)))
      .end();
  });
  if (response.statusCode === 200) return response;
  throw refused(response.statusCode ?? 0, (await json(response)) as AdminError);
}

interface AdminError {
  readonly error?: { readonly message: string };
}

/** Where the admin listener is, without a slash at its end, and what it asks for. */
function findGateway(): { readonly url: string; readonly token: string } {
  const port = readVariable(process.env, 'TEXTGATE_ADMIN_PORT') ?? defaultAdminPort;
  const url = readVariable(process.env, 'TEXTGATE_ADMIN_URL') ?? `http://${defaultHost}:${port}`;
  const token = readVariable(process.env, 'TEXTGATE_ADMIN_TOKEN') ?? readAdminToken(adminTokenFile);
  if (token === null)
    throw new Error(`no admin token: set TEXTGATE_ADMIN_TOKEN, or run this where ${adminTokenFile} is`);
  return { url: url.replace(/\/+$/, ''), token };
}

function unreachable(url: string): Error {
  return new Error(
    `the gateway does not answer on ${url}: is it running? (TEXTGATE_ADMIN_URL names another)`,
  );
}

function refused(status: number, { error }: AdminError): Error {
  if (status === 401)
    return new Error(
      `${error?.message ?? ''} TEXTGATE_ADMIN_TOKEN, or else ${adminTokenFile} here, has to be the gateway's.`,
    );
  return new Error(error?.message ?? `status ${status}`);
}

/** Reads a list of the admin listener page by page, to its end or until there are enough. */
export async function readPages(
  path: string,
  query = '',
  most = Number.POSITIVE_INFINITY,
): Promise<unknown[]> {
  const found: unknown[] = [];
  let before: string | null = null;
  do {
    const cursor: string = before === null ? '' : `&before=${encodeURIComponent(before)}`;
    const page = (await callAdmin(
      'GET',
      `${path}?limit=${Math.min(200, most - found.length)}&${query}${cursor}`,
    )) as {
      data: readonly unknown[];
      next: string | null;
    };
    found.push(...page.data);
    before = page.next;
  } while (before !== null && found.length < most);
  return found;
}
