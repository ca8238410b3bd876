import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTextgate } from './textgate-process.ts';
import type { TextgateProcess } from './textgate-process.ts';

const adminToken = 'an-admin-token-for-tests';

/** A gateway in a process and a folder of its own; its database is `data/textgate.db`. */
export interface ServedFolder {
  readonly server: TextgateProcess;
  readonly url: string;
  readonly adminUrl: string;
  /** The environment in which the command line finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends a request to the admin listener; returns the parsed body. */
  // eslint-disable-next-line typescript/no-explicit-any -- tests check what they read by their expectations
  ask(method: string, path: string, body?: object): Promise<any>;
}

/** Serves one model, `small`, for 1 and 2 USD per million tokens. `database` is its URL in the config. */
export async function serveFolder(
  folder: string,
  upstreamUrl: string,
  database = 'sqlite:data/textgate.db',
): Promise<ServedFolder> {
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
  const server = startTextgate(['serve', '--config', config], folder);
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
