import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';
import { startTextgate } from './textgate-process.ts';
import type { Finished, Outputs, TextgateProcess } from './textgate-process.ts';

/** A gateway run by `textgate serve`, with a key; its outputs may fail. */
export interface ServingProcess {
  readonly server: TextgateProcess;
  readonly folder: string;
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
  /** Posts with the key; the default body requests text from the demo. */
  post(path?: string, body?: object): Promise<Response>;
  /** The same, with the whole answer read. */
  ask(): Promise<{ readonly status: number; readonly text: string }>;
  readMetrics(): Promise<string>;
  /** Runs a `textgate` command that calls its admin listener. */
  run(...args: readonly string[]): Promise<Finished>;
  /** The environment of such a command. */
  readonly adminEnvironment: Readonly<Record<string, string>>;
}

const token = 'an-admin-token-for-tests';

/** How long a process may take to start on a busy machine, in milliseconds. */
const startMs = 60_000;

interface ServingOptions extends Outputs {
  /** The config; without one the built-in demo is served. */
  readonly config?: object;
  readonly environment?: Readonly<Record<string, string>>;
  /** Settings of the key, beside its name. */
  readonly keySettings?: object;
}

/** Starts one on free ports chosen beforehand, since it may not be able to print them. */
export async function startServing({
  config,
  environment,
  keySettings,
  ...outputs
}: ServingOptions = {}): Promise<ServingProcess> {
  const folder = makeTemporaryFolder();
  if (config !== undefined) writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(config));
  const [port, adminPort] = await Promise.all([freePort(), freePort()]);
  const server = startTextgate(
    config === undefined ? ['serve'] : ['serve', '--config', 'textgate.yaml'],
    folder,
    {
      TEXTGATE_PORT: String(port),
      TEXTGATE_ADMIN_PORT: String(adminPort),
      TEXTGATE_ADMIN_TOKEN: token,
      ...environment,
    },
    outputs,
  );
  const url = `http://127.0.0.1:${port}`;
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const adminEnvironment = { TEXTGATE_ADMIN_URL: adminUrl, TEXTGATE_ADMIN_TOKEN: token };
  const isReady = () =>
    fetch(`${adminUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually('the process is ready', isReady, startMs);
  const made = await fetch(`${adminUrl}/admin/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'test', ...keySettings }),
  });
  const { key } = (await made.json()) as { key: string };
  const post = (
    path = '/v1/chat/completions',
    body: object = { model: 'demo', messages: [{ role: 'user', content: 'x' }] },
  ): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  return {
    server,
    folder,
    url,
    adminUrl,
    key,
    post,
    async ask() {
      const response = await post();
      return { status: response.status, text: await response.text() };
    },
    run: (...args) => startTextgate(args, folder, adminEnvironment).finished,
    adminEnvironment,
    readMetrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
  };
}
