import { onTestFinished } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, KeySettings } from '../../src/index.ts';
import type { PresentedStatus } from '../../src/http/present/status.ts';
import { runCommand } from './run-command.ts';
import type { ServingProcess } from './serving-process.ts';

/** A gateway in the process of the test, with a key, to which commands are given that run there, too. */
export type CommandedGateway = Omit<ServingProcess, 'server' | 'folder'> & {
  /** The requests in progress, as `textgate top --json` has them. */
  readonly running: () => Promise<PresentedStatus['in_flight']['data']>;
};

const token = 'an-admin-token-for-tests';

/** What the built-in demo serves. */
const demo = {
  upstreams: { demo: { url: 'demo:' } },
  models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
};

interface CommandedOptions {
  /** The config without its listeners and its storage; without one the built-in demo is served. */
  readonly config?: object;
  /** Settings of the key, beside its name. */
  readonly keySettings?: Omit<KeySettings, 'name'>;
}

/** Starts one, which ends with the test. */
export async function startCommanded({
  config = demo,
  keySettings,
}: CommandedOptions = {}): Promise<CommandedGateway> {
  const listeners = { server: { port: 0 }, admin: { port: 0, token }, storage: { url: 'sqlite::memory:' } };
  const gateway = createGateway({ ...config, ...listeners } as unknown as ConfigInput, {
    logLevel: 'silent',
  });
  onTestFinished(() => gateway.close());
  const { url, adminUrl } = await gateway.listen();
  const { key } = await gateway.keys.create({ name: 'test', ...keySettings });
  const post: ServingProcess['post'] = (
    path = '/v1/chat/completions',
    body = { model: 'demo', messages: [{ role: 'user', content: 'x' }] },
  ) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const adminEnvironment = { TEXTGATE_ADMIN_URL: adminUrl, TEXTGATE_ADMIN_TOKEN: token };
  const run: CommandedGateway['run'] = (...args) => runCommand(args, undefined, adminEnvironment);
  return {
    url,
    adminUrl,
    key,
    post,
    async ask() {
      const response = await post();
      return { status: response.status, text: await response.text() };
    },
    readMetrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    run,
    adminEnvironment,
    async running() {
      const status = JSON.parse((await run('top', '--json')).stdout) as PresentedStatus;
      return status.in_flight.data;
    },
  };
}
