import type { IncomingMessage } from 'node:http';
import { json, text as readText } from 'node:stream/consumers';
import { maxPageSize } from '../domain/ports/records.ts';
import { commandAgent } from '../shared/command-agent.ts';
import { readVersion } from '../shared/version.ts';
import type { PresentedList } from '../http/present/list.ts';
import { findAdminListener, findGateway, tokenPlace } from './find-gateway.ts';
import { isConnectionFault, isOk, sendRequest } from './send-request.ts';
import type { CommandRequest } from './send-request.ts';

/** How long a command waits for the gateway, in milliseconds. */
const timeoutMs = 10_000;

/**
 * Calls the admin listener; returns the parsed body, or throws an `Error` whose message says what to do
 * (`AdminRefusal` if the gateway refused the call).
 */
export async function callAdmin<Answer>(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body?: object,
): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs);
  return readAnswer<Answer>(await openAdmin(path, { method, signal, body: body && JSON.stringify(body) }));
}

/** Reads one thing of the admin listener; `null` if there is none. */
export async function findAdmin<Found>(path: string): Promise<Found | null> {
  try {
    return await callAdmin<Found>('GET', path);
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 404) return null;
    throw error;
  }
}

/** Calls the admin listener for an answer in JSON that may take minutes, without a timeout. */
export async function awaitAdmin<Answer>(path: string, request: CommandRequest = {}): Promise<Answer> {
  return (await json(await openAdmin(path, request))) as Answer;
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
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'user-agent': commandAgent + readVersion(),
    accept,
  };
  const response = await sendRequest(url + path, { ...request, headers }).catch((error: unknown) => {
    if (!isConnectionFault(error)) throw error;
    throw new Error(
      `the gateway does not answer on ${url}: start it, or set TEXTGATE_ADMIN_URL to its admin address`,
    );
  });
  if (isOk(response)) return response;
  throw await refused(response.statusCode ?? 0, await readAnswer<AdminError | null>(response));
}

/** The parsed body of an answer. What has none that can be parsed is no gateway. */
async function readAnswer<Answer>(answer: IncomingMessage): Promise<Answer> {
  const parsed = await json(answer).catch(async (error: unknown) => {
    const { url } = await findAdminListener();
    if (!(error instanceof SyntaxError))
      throw new Error(`the answer of the gateway on ${url} broke off: try again`, { cause: error });
    throw new Error(`${url} is not the admin listener of a gateway: set TEXTGATE_ADMIN_URL to its address`);
  });
  return parsed as Answer;
}

interface AdminError {
  readonly error?: { readonly message: string };
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

/** The parameter of a list that takes the cursor of the next page. */
type Cursor = 'before' | 'after';

/** Reads a list of the admin listener page by page, up to `most` entries; `read` reads the page at a path. */
async function* pagesOf<Read extends { readonly next: string | null }>(
  read: (pagePath: string) => Promise<Read>,
  path: string,
  query: string,
  most: number,
  cursor: Cursor,
): AsyncGenerator<Read> {
  let place = '';
  for (let left = most; left > 0; left -= maxPageSize) {
    const page = await read(`${path}?limit=${Math.min(maxPageSize, left)}&${query}${place}`);
    yield page;
    if (page.next === null) return;
    place = `&${cursor}=${encodeURIComponent(page.next)}`;
  }
}

/** Reads the entries of a list of the admin listener, or the first `most` of them, page by page. */
export async function* readPages<Entry>(
  path: string,
  query = '',
  most = Infinity,
  cursor: Cursor = 'before',
): AsyncGenerator<readonly Entry[]> {
  const read = (page: string) => callAdmin<PresentedList<Entry>>('GET', page);
  for await (const { data } of pagesOf(read, path, query, most, cursor)) yield data;
}

/** Reads all entries of a list of the admin listener, or the first `most` of them. */
export async function readList<Entry>(...list: Parameters<typeof readPages>): Promise<readonly Entry[]> {
  const found: Entry[] = [];
  for await (const entries of readPages<Entry>(...list)) found.push(...entries);
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
  for await (const { csv } of pagesOf(readCsvPage, path, query, most, cursor))
    text += text === '' ? csv : csv.slice(csv.indexOf('\n') + 1);
  return text.trimEnd();
}

async function readCsvPage(path: string) {
  const answer = await openAdmin(path, { accept: 'text/csv', signal: AbortSignal.timeout(timeoutMs) });
  return { csv: await readText(answer), next: (answer.headers['x-textgate-next'] ?? null) as string | null };
}
