import type { IncomingMessage } from 'node:http';
import { parseJson } from '../../shared/parse-json.ts';
import { defaultHost, defaultPort } from '../../config/default-addresses.ts';
import { readVariable } from '../../config/environment.ts';
import { isConnectionFault, isOk, readStart, sendRequest } from '../send-request.ts';
import { addressOf, checkedAddress } from '../addresses.ts';

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
  const { error } = (parseJson(await readStart(response, maxErrorChars)) ?? {}) as {
    readonly error?: ErrorObject;
  };
  throw new Error(`${response.statusCode}: ${errorText(error ?? {}, `${url} is no gateway`)}`);
}

/** Where a question is sent, and with which key. */
export interface Target {
  /** Without `/v1` and without a slash at its end. */
  readonly url: string;
  readonly key: string;
}

/** Finds both, by the options of the command or else by the environment. Throws if there is no key, or no usable address. */
export async function findTarget(options: { readonly url?: string; readonly key?: string }): Promise<Target> {
  const key = options.key ?? (await keyOfEnvironment(process.env));
  if (key === undefined)
    throw new Error('no key: set TEXTGATE_API_KEY to one; `textgate keys create <name>` makes one');
  // It could not be sent in a header, and the call would fail as if there were no gateway.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new Error('the key is not valid: expected printable ASCII without blanks');
  return { url: findUrl(options.url, process.env), key };
}

async function keyOfEnvironment(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const name of ['TEXTGATE_API_KEY', 'OPENAI_API_KEY', 'TEXTGATE_KEY']) {
    const key = readVariable(env, name);
    if (key !== undefined) return key;
  }
  const file = readVariable(env, 'TEXTGATE_KEY_FILE');
  if (file === undefined) return undefined;
  const { readSecretFile } = await import('../../config/secret-file.ts');
  try {
    return readSecretFile(file);
  } catch (error) {
    throw new Error(`TEXTGATE_KEY_FILE: ${(error as Error).message}`, { cause: error });
  }
}

function findUrl(option: string | undefined, env: NodeJS.ProcessEnv): string {
  if (option !== undefined) return checkedUrl(option, '--url');
  for (const name of ['TEXTGATE_URL', 'OPENAI_BASE_URL']) {
    const url = readVariable(env, name);
    if (url !== undefined) return checkedUrl(url, name);
  }
  const host = readVariable(env, 'TEXTGATE_HOST') ?? defaultHost;
  const port = readVariable(env, 'TEXTGATE_PORT') ?? defaultPort;
  return addressOf(host, port);
}

/** An address with or without `/v1`, as clients have it. */
function checkedUrl(text: string, name: string): string {
  return checkedAddress(text, { name, port: defaultPort, secret: 'key' }).replace(/\/v1$/, '');
}

/** An error as the gateway sends it, in the envelope of an answer or inside a stream. */
export interface ErrorObject {
  readonly message?: string;
  /** What the provider said of it, if it found the request at fault. */
  readonly upstream?: { readonly message?: string | null };
}

/** An error in the gateway's own words, and in the provider's; `unnamed` where it says nothing. */
export function errorText({ message, upstream }: ErrorObject, unnamed = 'the answer failed'): string {
  const said = upstream?.message ?? '';
  return `${message ?? unnamed}${said === '' ? '' : ` It said: ${said}`}`;
}
