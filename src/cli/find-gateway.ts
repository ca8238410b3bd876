import { adminTokenFile, readAdminToken } from '../config/admin-token.ts';
import { defaultAdminPort, defaultHost } from '../config/default-addresses.ts';
import { readVariable } from '../config/environment.ts';
import { checkedAddress } from './checked-address.ts';
import { reachable } from './reachable.ts';

/** Where the admin listener of a gateway is, and the token in the same place; `null` if that place has none. */
interface AdminListener {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string | null;
}

/**
 * The admin listener: the one of `configFile`, or else the one at `TEXTGATE_ADMIN_URL`, or that of the config file
 * `TEXTGATE_CONFIG`, or that of `TEXTGATE_ADMIN_HOST` and `_PORT`. Throws `ConfigError` if the `admin` section of the
 * file has faults.
 */
export async function findAdminListener(configFile?: string): Promise<AdminListener> {
  const { env } = process;
  const token = readVariable(env, 'TEXTGATE_ADMIN_TOKEN') ?? null;
  const url = readVariable(env, 'TEXTGATE_ADMIN_URL');
  if (configFile === undefined && url !== undefined) return { url: checkedUrl(url), token };
  const file = configFile ?? readVariable(env, 'TEXTGATE_CONFIG');
  if (file === undefined) {
    const host = readVariable(env, 'TEXTGATE_ADMIN_HOST') ?? defaultHost;
    return { url: addressOf(host, readVariable(env, 'TEXTGATE_ADMIN_PORT') ?? defaultAdminPort), token };
  }
  const { loadAdminSection } = await import('../config/load.ts');
  const admin = loadAdminSection(file, env);
  return { url: addressOf(admin.host, admin.port), token: admin.token ?? token };
}

/** The admin listener and its token, which is that of the token file unless it is configured. Throws without a token. */
export async function findGateway(): Promise<{ readonly url: string; readonly token: string }> {
  const { url, token } = await findAdminListener();
  const found = token ?? readAdminToken(adminTokenFile);
  if (found === null)
    throw new Error(
      `no admin token: set TEXTGATE_ADMIN_TOKEN, or run this command in the folder with ${adminTokenFile}`,
    );
  // It could not be sent in a header, and the call would fail as if there were no gateway.
  if (!/^[\x21-\x7e]+$/.test(found))
    throw new Error(
      `the admin token in ${token === null ? adminTokenFile : 'TEXTGATE_ADMIN_TOKEN'} is not valid: expected printable ASCII without blanks`,
    );
  return { url, token: found };
}

/** The address in `TEXTGATE_ADMIN_URL`. */
function checkedUrl(text: string): string {
  return checkedAddress(text, { name: 'TEXTGATE_ADMIN_URL', port: defaultAdminPort, secret: 'token' });
}

function addressOf(host: string, port: number | string): string {
  return reachable(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}
