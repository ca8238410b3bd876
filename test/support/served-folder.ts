import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTextgate } from './textgate-process.ts';
import type { ServedHere } from './serve-here.ts';
import type { TextgateProcess } from './textgate-process.ts';

const adminToken = 'an-admin-token-for-tests';

/** A gateway in a folder of its own; its database is `data/textgate.db`. */
export interface ServedFolder<Server extends ServedHere = ServedHere> {
  readonly server: Server;
  readonly url: string;
  readonly adminUrl: string;
  /** The environment in which the command line finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends a request to the admin listener; returns the parsed body. */
  // eslint-disable-next-line typescript/no-explicit-any -- tests check what they read by their expectations
  ask(method: string, path: string, body?: object): Promise<any>;
}

/**
 * Serves one model, `small`, for 1 and 2 USD per million tokens, in a process of its own. `database` is its URL in the config.
 */
export function serveFolder(
  folder: string,
  upstreamUrl: string,
  database?: string,
): Promise<ServedFolder<TextgateProcess>> {
  return serveFolderBy(startTextgate, folder, upstreamUrl, database);
}

/** The same, started by `startTextgate`, or by `serveHere` in the process of the test. */
export async function serveFolderBy<Server extends ServedHere>(
  start: (args: readonly string[], folder: string) => Server,
  folder: string,
  upstreamUrl: string,
  database = 'sqlite:data/textgate.db',
): Promise<ServedFolder<Server>> {
  const config = join(folder, 'textgate.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: 0, drain: '5s' },
      admin: { port: 0, token: adminToken },
      storage: { url: database, spool: 'spool' },
      limits: { concurrency: 10, requestsPerMinute: 1_000_000 },
      upstreams: { local: { url: upstreamUrl } },
      models: {
        small: { routes: [{ upstream: 'local', model: 'tiny' }], price: { input: '1', output: '2' } },
      },
    }),
  );
  const server = start(['serve', '--config', config], folder);
  const [, url = '', adminUrl = ''] = await server.printed(/serves (\S+)\/v1 \(admin: (\S+)\)/);
  return {
    server,
    url,
    adminUrl,
    environment: { TEXTGATE_ADMIN_URL: adminUrl, TEXTGATE_ADMIN_TOKEN: adminToken },
    async ask(method, path, body) {
      const response = await fetch(`${adminUrl}/admin${path}`, {
        method,
        headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return response.json();
    },
  };
}
