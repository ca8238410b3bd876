import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { adminTokenFile } from '../config/admin-token.ts';
import { maxPageSize } from '../domain/page-size.ts';
import { findGateway } from './find-gateway.ts';

/** How long a command waits for the gateway, in milliseconds. */
const timeoutMs = 10_000;

/**
 * Calls the admin listener; returns the parsed body, or throws an `Error` whose message says what to do
 * (`AdminRefusal` if the gateway refused the call). CSV is
 * returned as text, with the cursor of the next page.
 */
export async function callAdmin(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body?: object,
  accept = 'application/json',
): Promise<unknown> {
  const { url, token } = await findGateway();
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
  const answer = (await response.json().catch(() => {
    throw noGateway(url);
  })) as AdminError | null;
  if (!response.ok) throw refused(response.status, answer);
  return answer;
}

/**
 * Calls the admin listener for an answer that may take minutes, without a timeout: `fetch` gives up after five minutes.
 * Resolves with the answer when it begins; throws as `callAdmin` does.
 */
export async function openAdmin(
  path: string,
  {
    method = 'GET',
    accept = 'application/json',
    signal,
  }: { readonly method?: 'GET' | 'POST'; readonly accept?: string; readonly signal?: AbortSignal } = {},
): Promise<IncomingMessage> {
  const { url, token } = await findGateway();
  const { request } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept };
    request(url + path, { method, headers, ...(signal === undefined ? {} : { signal }) }, resolve)
      .on('error', () => reject(unreachable(url)))
      .end();
  });
  if (response.statusCode === 200) return response;
  const answer = (await json(response).catch(() => {
    throw noGateway(url);
  })) as AdminError | null;
  throw refused(response.statusCode ?? 0, answer);
}

interface AdminError {
  readonly error?: { readonly message: string };
}

function unreachable(url: string): Error {
  return new Error(
    `the gateway does not answer on ${url}: start it, or set TEXTGATE_ADMIN_URL to its admin address`,
  );
}

/** What answers is no gateway, as what it says is no JSON. */
function noGateway(url: string): Error {
  return new Error(`${url} is not the admin listener of a gateway: set TEXTGATE_ADMIN_URL to its address`);
}

/** A refusal by the admin listener. */
export class AdminRefusal extends Error {
  /** The HTTP status. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'AdminRefusal';
    this.status = status;
  }
}

function refused(status: number, answer: AdminError | null): AdminRefusal {
  const hint =
    status === 401
      ? ` Set TEXTGATE_ADMIN_TOKEN to the gateway's token; the default is ${adminTokenFile} in this folder.`
      : '';
  return new AdminRefusal(status, `${answer?.error?.message ?? `status ${status}.`}${hint}`);
}

/** A page of a list, with the cursor of the next page; `null` after the last one. */
export interface Page {
  readonly next: string | null;
}

/** The parameter of a list that takes the cursor. */
type Cursor = 'before' | 'after';

/** Reads all entries of a list of the admin listener, or the first `most` of them. */
export async function readList(
  path: string,
  query = '',
  most = Infinity,
  cursor: Cursor = 'before',
): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const page of readPages(path, query, most, cursor, 'application/json')) {
    const { data } = page as Page & { readonly data: readonly unknown[] };
    found.push(...data);
  }
  return found;
}

/** Reads a list of the admin listener as one CSV text: only the first page keeps its header line. */
export async function readCsv(
  path: string,
  query: string,
  most: number,
  cursor: Cursor = 'before',
): Promise<string> {
  let text = '';
  for await (const page of readPages(path, query, most, cursor, 'text/csv')) {
    const { csv } = page as Page & { readonly csv: string };
    text += text === '' ? csv : csv.slice(csv.indexOf('\n') + 1);
  }
  return text.trimEnd();
}

/** Reads a list of the admin listener page by page, up to `most` entries. */
export async function* readPages(
  path: string,
  query: string,
  most: number,
  cursor: Cursor,
  accept: string,
): AsyncGenerator<Page> {
  let place = '';
  for (let left = most; left > 0; left -= maxPageSize) {
    const limit = Math.min(maxPageSize, left);
    const page = (await callAdmin(
      'GET',
      `${path}?limit=${limit}&${query}${place}`,
      undefined,
      accept,
    )) as Page;
    yield page;
    if (page.next === null) return;
    place = `&${cursor}=${encodeURIComponent(page.next)}`;
  }
}
