import { adminTokenPlace, readAdminToken } from '../config/admin-token.ts';
import { defaultAdminPort, defaultDatabaseUrl, defaultHost } from '../config/default-addresses.ts';
import { readVariable } from '../config/environment.ts';
import { addressOf, checkedAddress } from './addresses.ts';

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
  const name = 'TEXTGATE_ADMIN_URL';
  const url = readVariable(env, name);
  if (configFile === undefined && url !== undefined)
    return { url: checkedAddress(url, { name, port: defaultAdminPort, secret: 'token' }), token };
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
  const place = token === null ? await tokenPlace() : null;
  const found = token ?? (place === null ? null : readAdminToken(place));
  if (found === null)
    throw new Error(
      `no admin token${place === null ? '' : ` in ${place}`}: set TEXTGATE_ADMIN_TOKEN to it, or TEXTGATE_CONFIG to the config file of the gateway, whose start says where the token is`,
    );
  // It could not be sent in a header, and the call would fail as if there were no gateway.
  if (!/^[\x21-\x7e]+$/.test(found))
    throw new Error(
      `the admin token in ${place ?? 'TEXTGATE_ADMIN_TOKEN'} is not valid: expected printable ASCII without blanks`,
    );
  return { url, token: found };
}

/** Where the gateway of the config file, or of the environment, keeps a generated token; `null` if it has none. */
export async function tokenPlace(): Promise<string | null> {
  const { env } = process;
  const configFile = readVariable(env, 'TEXTGATE_CONFIG');
  const databaseUrl = readVariable(env, 'TEXTGATE_STORAGE_URL') ?? defaultDatabaseUrl;
  if (configFile === undefined) return adminTokenPlace({ tokenFolder: undefined, databaseUrl, configFile });
  const { loadAdminSection, loadStorageSection } = await import('../config/load.ts');
  const { readDatabaseUrl } = await import('../config/database-url.ts');
  const { tokenFolder } = loadAdminSection(configFile, env);
  const { url } = loadStorageSection(configFile, env);
  return adminTokenPlace({ tokenFolder, databaseUrl: readDatabaseUrl(url), configFile });
}
