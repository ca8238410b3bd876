import type { PresentedList } from '../../http/present/list.ts';

/** The methods of the admin API that the console uses. */
type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** A refusal of the gateway in its own words, or the failure to reach it. */
export class AdminError extends Error {
  /** The status of the answer; `null` if none came. */
  readonly status: number | null;
  readonly code: string | null;

  constructor(message: string, status: number | null = null, code: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const endListeners = new Set<() => void>();

/** Calls a function whenever the gateway no longer accepts the session. Returns what ends that. */
export function onSessionEnd(listener: () => void): () => void {
  endListeners.add(listener);
  return () => endListeners.delete(listener);
}

/** Tells that the gateway no longer accepts the session. */
function reportSessionEnd(): void {
  for (const listener of endListeners) listener();
}

/** The path of an admin route, from that of the page, with those parameters that have a value. */
export function adminPath(
  route: string,
  parameters: Readonly<Record<string, string | number | null | undefined>> = {},
): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, String(value)]],
  );
  const query = new URLSearchParams(given).toString();
  return `../admin/${route}${query === '' ? '' : `?${query}`}`;
}

/**
 * An id as one part of a path. Browsers take `.` and `..` for steps between paths, however these are encoded, and would ask
 * another route: nothing has such an id, nor one that ends in a space.
 */
export function inPath(id: string): string {
  return /^\.{1,2}$/.test(id) ? `${id}%20` : encodeURIComponent(id);
}

interface CallOptions {
  readonly method?: Method;
  readonly body?: object;
  /** The media type of the answer, where the gateway has several. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** Calls the admin API; resolves with an answer of success when it begins. Throws an `AdminError`. */
export async function openAdmin(
  path: string,
  { method = 'GET', body, accept = '*/*', signal }: CallOptions = {},
): Promise<Response> {
  const response = await fetch(path, {
    method,
    headers: { accept, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    throw new AdminError('The gateway can not be reached.');
  });
  if (response.ok) return response;
  throw readRefusal(response.status, await response.text().catch(() => ''));
}

/** Calls the admin API and returns the JSON of its answer. Throws an `AdminError`. */
export async function callAdmin<Answer>(path: string, options: CallOptions = {}): Promise<Answer> {
  const answer = await openAdmin(path, options);
  return (await answer.json()) as Answer;
}

/** Asks for one thing of the admin API; `null` if there is none. */
export async function findAdmin<Found>(path: string, signal: AbortSignal): Promise<Found | null> {
  try {
    return await callAdmin<Found>(path, { signal });
  } catch (error) {
    if (error instanceof AdminError && error.status === 404) return null;
    throw error;
  }
}

/**
 * Finds out whether the session is over, after an answer broke off, which does not say why: the answer to a request does, and
 * `onSessionEnd` reports it.
 */
export function checkSession(): void {
  callAdmin(adminPath('status', { limit: 1 })).catch(() => {});
}

/** Reads a refusal from its status and its body. One that no gateway wrote, as of a proxy, is told by its status. */
export function readRefusal(status: number, body: string): AdminError {
  const error = readError(body);
  if (status === 401) reportSessionEnd();
  if (error === null) return new AdminError(`The answer has the status ${status}.`, status);
  return new AdminError(error.message, status, error.code);
}

interface ErrorBody {
  readonly message: string;
  readonly code: string | null;
}

function readError(body: string): ErrorBody | null {
  try {
    return (JSON.parse(body) as { error?: ErrorBody } | null)?.error ?? null;
  } catch {
    return null;
  }
}

/** What an error says to a person. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What was read of a list: all of it, or as many pages as were allowed. */
interface Pages<Row> {
  readonly rows: readonly Row[];
  /** The cursor of the next page; `null` at the end. */
  readonly next: string | null;
}

interface PageOptions {
  /** The name of the parameter that goes on behind a page. */
  readonly cursor: 'after' | 'before';
  readonly maxPages: number;
  readonly signal?: AbortSignal;
}

/** Reads pages of a list one after another, up to a bound: a page without rows may not be the last one. */
export async function readPages<Row>(
  route: string,
  parameters: Readonly<Record<string, string | number | null>>,
  { cursor, maxPages, signal }: PageOptions,
): Promise<Pages<Row>> {
  const rows: Row[] = [];
  let next: string | null = parameters[cursor]?.toString() ?? null;
  for (let page = 0; page < maxPages; page++) {
    const path = adminPath(route, { ...parameters, [cursor]: next });
    const answer: PresentedList<Row> = await callAdmin(path, signal === undefined ? {} : { signal });
    for (const row of answer.data) rows.push(row);
    next = answer.next;
    if (next === null) break;
  }
  return { rows, next };
}

/** Reads a list of the admin API as CSV, page by page up to a bound. `isWhole`: the bound was not reached. */
export async function readCsv(
  route: string,
  parameters: Readonly<Record<string, string | null>>,
  maxPages: number,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const pages: string[] = [];
  let after: string | null = null;
  do {
    const answer: Response = await openAdmin(adminPath(route, { ...parameters, after }), {
      accept: 'text/csv',
    });
    const page = await answer.text();
    // Every page has the line with the names of the columns.
    pages.push(pages.length === 0 ? page : page.slice(page.indexOf('\n') + 1));
    after = answer.headers.get('x-textgate-next');
  } while (after !== null && pages.length < maxPages);
  return { text: pages.join(''), isWhole: after === null };
}
