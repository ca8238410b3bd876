import type { TestGateway } from './test-gateway.ts';

interface AdminAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; `null` unless the answer is JSON. */
  // eslint-disable-next-line typescript/no-explicit-any -- tests check what they read by their expectations
  readonly body: any;
}

/** Sends a request to the admin listener of a gateway. */
export async function askAdmin(
  { adminUrl, adminToken }: TestGateway,
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<AdminAnswer> {
  const response = await fetch(`${adminUrl}/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
}
