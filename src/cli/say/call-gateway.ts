import { parseJson } from '../../shared/parse-json.ts';
import { errorText } from './error-text.ts';
import type { ErrorObject } from './error-text.ts';
import type { Target } from './find-target.ts';

/** The longest error that is read, in characters. */
const maxErrorChars = 100_000;

/** Calls the listener for clients; throws with the gateway's own words if it refuses. */
export async function callGateway(
  { url, key }: Target,
  path: string,
  signal: AbortSignal,
  body?: object,
): Promise<Response> {
  const response = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    redirect: 'error',
    signal,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } };
    const reason = cause?.code ?? cause?.message ?? 'no connection';
    const advice = 'start it, or set TEXTGATE_URL to its address for clients';
    throw new Error(`no gateway answers on ${url} (${reason}): ${advice}`, { cause: error });
  });
  if (response.ok) return response;
  const text = (await response.text()).slice(0, maxErrorChars);
  const { error } = (parseJson(text) ?? {}) as { readonly error?: ErrorObject };
  throw new Error(`${response.status}: ${errorText(error ?? {}, `${url} is no gateway`)}`);
}
