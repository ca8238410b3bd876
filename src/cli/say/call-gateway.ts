import type { IncomingMessage } from 'node:http';
import { parseJson } from '../../shared/parse-json.ts';
import { isConnectionFault, isOk, sendRequest } from '../send-request.ts';
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
): Promise<IncomingMessage> {
  const response = await sendRequest(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    signal,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    if (signal.aborted || !isConnectionFault(error)) throw error;
    const advice = 'start it, or set TEXTGATE_URL to its address for clients';
    throw new Error(`no gateway answers on ${url} (${error.code}): ${advice}`, { cause: error });
  });
  if (isOk(response)) return response;
  const { error } = (parseJson(await readStart(response)) ?? {}) as { readonly error?: ErrorObject };
  throw new Error(`${response.statusCode}: ${errorText(error ?? {}, `${url} is no gateway`)}`);
}

/** As much of an error as is read. */
async function readStart(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response as AsyncIterable<string>) {
    text += piece;
    if (text.length > maxErrorChars) break;
  }
  return text;
}
