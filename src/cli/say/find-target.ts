import { defaultHost, defaultPort } from '../../config/default-addresses.ts';
import { readVariable } from '../../config/environment.ts';
import { checkedAddress } from '../checked-address.ts';
import { reachable } from '../reachable.ts';

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
  return reachable(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/** An address with or without `/v1`, as clients have it. */
function checkedUrl(text: string, name: string): string {
  return checkedAddress(text, { name, port: defaultPort, secret: 'key' }).replace(/\/v1$/, '');
}
