import type { IncomingMessage } from 'node:http';
import { json, text as readText } from 'node:stream/consumers';
import { maxPageSize } from '../domain/page-size.ts';
import { findAdminListener, findGateway, tokenPlace } from './find-gateway.ts';
import { isConnectionFault, isOk, sendRequest } from './send-request.ts';
import type { CommandRequest } from './send-request.ts';

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
  const answer = await openAdmin(path, {
    method,
    accept,
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (accept === 'text/csv')
    return { csv: await readText(answer), next: answer.headers['x-textgate-next'] ?? null };
  return readAnswer(answer);
}

/**
 * Calls the admin listener for an answer that may take minutes, without a timeout. Resolves with the answer when it begins;
 * throws as `callAdmin` does.
 */
export async function openAdmin(
  path: string,
  { accept = 'application/json', ...request }: CommandRequest & { readonly accept?: string } = {},
): Promise<IncomingMessage> {
  const { url, token } = await findGateway();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept };
  const response = await sendRequest(url + path, { ...request, headers }).catch((error: unknown) => {
    throw isConnectionFault(error) ? unreachable(url) : error;
  });
  if (isOk(response)) return response;
  throw await refused(response.statusCode ?? 0, (await readAnswer(response)) as AdminError | null);
}

/** The parsed body of an answer. What has none that can be parsed is no gateway. */
async function readAnswer(answer: IncomingMessage): Promise<unknown> {
  return json(answer).catch(async (error: unknown) => {
    const { url } = await findAdminListener();
    if (!(error instanceof SyntaxError))
      throw new Error(`the answer of the gateway on ${url} broke off: try again`, { cause: error });
    throw new Error(`${url} is not the admin listener of a gateway: set TEXTGATE_ADMIN_URL to its address`);
  });
}

interface AdminError {
  readonly error?: { readonly message: string };
}

function unreachable(url: string): Error {
  return new Error(
    `the gateway does not answer on ${url}: start it, or set TEXTGATE_ADMIN_URL to its admin address`,
  );
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

async function refused(status: number, answer: AdminError | null): Promise<AdminRefusal> {
  const place = status === 401 ? await tokenPlace() : null;
  const hint =
    status === 401
      ? ` Set TEXTGATE_ADMIN_TOKEN to the gateway's token${place === null ? '' : `; the default is that in ${place}`}.`
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
