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
  const port = readVariable(process.env, 'TEXTGATE_ADMIN_PORT') ?? defaultAdminPort;
  const url = readVariable(process.env, 'TEXTGATE_ADMIN_URL') ?? `http://${defaultHost}:${port}`;
  const token = readVariable(process.env, 'TEXTGATE_ADMIN_TOKEN') ?? readAdminToken(adminTokenFile);
  if (token === null)
    throw new Error(`no admin token: set TEXTGATE_ADMIN_TOKEN, or run this where ${adminTokenFile} is`);
  const response = await fetch(url.replace(/\/+$/, '') + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept },
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error(
      `the gateway does not answer on ${url}: is it running? (TEXTGATE_ADMIN_URL names another)`,
    );
  });
  if (response.ok && accept === 'text/csv')
    return { csv: await response.text(), next: response.headers.get('x-textgate-next') };
  const answer = (await response.json()) as { error?: { message: string } };
  if (response.status === 401)
    throw new Error(
      `${answer.error?.message ?? ''} TEXTGATE_ADMIN_TOKEN, or else ${adminTokenFile} here, has to be the gateway's.`,
    );
  if (!response.ok) throw new Error(answer.error?.message ?? `status ${response.status}`);
  return answer;
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
