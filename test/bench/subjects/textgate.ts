import { closeSync, mkdtempSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildCheckout } from './build-checkout.ts';
import { freePort } from '../../support/free-port.ts';
import { startServer } from './start-server.ts';
import type { RunningSubject, Subject, SubjectSetting } from './subject.ts';

const adminToken = 'an-admin-token-for-benches';

/** The checkout that this file belongs to. */
export const ownCheckout = join(import.meta.dirname, '..', '..', '..');

/** The flags that the container image and `npm start` set: they can't be set from within. */
const nodeOptions = '--max-semi-space-size=8';

/** What a request can choose by its model: one route, three of which the first two fail, or the demo upstream. */
export const modelNames = { plain: 'plain', failover: 'failover', demo: 'demo' } as const;

/** The gateway of a checkout with all that it does by default, and a key that pays from a balance. */
export function createTextgate(name: string, checkout: string): Subject {
  return {
    name,
    isTextgate: true,
    only: null,
    async start(setting) {
      const databaseFile = join(setting.folder, 'textgate.db');
      return { ...(await startTextgate(checkout, setting, `sqlite:${databaseFile}`)), databaseFile };
    },
  };
}

/** A gateway that runs. */
interface RunningTextgate extends RunningSubject {
  readonly adminPort: number;
}

/** Starts the gateway of a checkout on a database, as one process or several workers, with a key that has a balance. */
export async function startTextgate(
  checkout: string,
  setting: SubjectSetting,
  database: string,
  workers = 1,
): Promise<RunningTextgate> {
  const { openFiles } = setting;
  // Gateways on one database have a folder each.
  const folder = mkdtempSync(join(setting.folder, 'node-'));
  const [port, adminPort] = [await freePort(), await freePort()];
  const config = join(folder, 'textgate.yaml');
  writeFileSync(config, JSON.stringify(configOf({ port, adminPort, workers }, database, setting)));
  const commandLine = [await buildCheckout(checkout)];
  const log = openSync(join(folder, 'log'), 'a');
  const running = await startServer({
    program: process.execPath,
    args: [...commandLine, 'serve', '--config', config],
    options: { cwd: folder, env: { NODE_OPTIONS: nodeOptions }, stdio: ['ignore', log, log], openFiles },
    port,
    readiness: { port: adminPort, path: '/readyz' },
  }).finally(() => closeSync(log));
  try {
    const [key = ''] = await createKeys(adminPort, 1);
    const headers = { authorization: `Bearer ${key}` };
    return { ...running, headers, failoverHeaders: headers, commandLine, adminPort };
  } catch (error) {
    await running.close();
    throw error;
  }
}

function configOf(
  { port, adminPort, workers }: Readonly<Record<'port' | 'adminPort' | 'workers', number>>,
  database: string,
  { simulatorPort, openFiles }: SubjectSetting,
) {
  const price = { input: '1', output: '2' };
  const route = (upstream: string) => ({ upstream, model: 'simulated' });
  const upstream = (path: string) => ({ url: `http://127.0.0.1:${simulatorPort}${path}/v1` });
  return {
    server: {
      port,
      // Earlier checkouts do not have the setting.
      ...(workers === 1 ? {} : { workers }),
      ...(openFiles === null ? {} : { maxConnections: openFiles, maxAnonymousPerAddress: openFiles }),
    },
    admin: { port: adminPort, token: adminToken },
    storage: { url: database },
    limits: { concurrency: 100_000, requestsPerMinute: 10_000_000 },
    upstreams: {
      good: upstream(''),
      first: upstream('/failing/1'),
      second: upstream('/failing/2'),
      demo: { url: 'demo:' },
    },
    models: {
      [modelNames.plain]: { routes: [route('good')], price },
      [modelNames.demo]: { routes: [route('demo')], price },
      [modelNames.failover]: { routes: [route('first'), route('second'), route('good')], price },
    },
  };
}

/** How many keys are created at the same time. */
const createdAtOnce = 20;

/** Creates keys with a balance, so that every request is held for, charged and booked. */
export async function createKeys(adminPort: number, count: number): Promise<readonly string[]> {
  const keys: string[] = [];
  while (keys.length < count) {
    const some = Math.min(createdAtOnce, count - keys.length);
    keys.push(...(await Promise.all(Array.from({ length: some }, () => createKey(adminPort)))));
  }
  return keys;
}

async function createKey(adminPort: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/admin/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', balance: '1000000' }),
  });
  const { key } = (await response.json()) as { readonly key?: string };
  if (key === undefined) throw new Error(`no key was created: status ${response.status}`);
  return key;
}
