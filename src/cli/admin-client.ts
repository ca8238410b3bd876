import { adminTokenFile, readAdminToken } from '../config/admin-token.ts';
import { readVariable } from '../config/environment.ts';
import { defaultAdminPort, defaultHost } from '../config/schema.ts';

/** How long the command line waits for the gateway, in milliseconds. */
const timeoutMs = 10_000;

/** Calls the admin listener; returns the parsed body, or throws an `Error` that says what to do. */
export async function callAdmin(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
  const port = readVariable(process.env, 'TEXTGATE_ADMIN_PORT') ?? defaultAdminPort;
  const url = readVariable(process.env, 'TEXTGATE_ADMIN_URL') ?? `http://${defaultHost}:${port}`;
  const token = readVariable(process.env, 'TEXTGATE_ADMIN_TOKEN') ?? readAdminToken(adminTokenFile);
  if (token === null)
    throw new Error(`no admin token: set TEXTGATE_ADMIN_TOKEN, or run this where ${adminTokenFile} is`);
  const response = await fetch(url.replace(/\/+$/, '') + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error(
      `the gateway does not answer on ${url}: is it running? (TEXTGATE_ADMIN_URL names another)`,
    );
  });
  const answer = (await response.json()) as { error?: { message: string } };
  if (!response.ok) throw new Error(answer.error?.message ?? `status ${response.status}`);
  return answer;
}
