import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { configuredPrice } from './check-ledger.ts';

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
const threadKiller = join(import.meta.dirname, 'thread-killer.ts');
const adminToken = 'an-admin-token-for-chaos';

/** How long a process may take to end after SIGTERM before it counts as stuck, in milliseconds. */
const maxExitMs = 15_000;

/** `textgate serve` in a process of its own, from source, with its database in `folder`. */
export interface ServedProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** The status of `/readyz`; 0 without an answer within a second. */
  readiness(): Promise<number>;
  /** Creates a key with this balance in USD. */
  createKey(name: string, balance: string): Promise<string>;
  /** Sends SIGTERM unless it has ended; resolves with the exit code, or `stuck` if it had to be killed. */
  end(): Promise<number | 'stuck'>;
}

/** The database file of a process that was started in `folder`. */
export function databaseIn(folder: string): string {
  return join(folder, 'data', 'textgate.db');
}

/** Starts one; `stdout` is the destination of its log. SIGUSR2 terminates its database thread. */
export async function serveIn(
  folder: string,
  upstreamUrl: string,
  stdout: number | 'pipe' | 'ignore' = 'ignore',
): Promise<ServedProcess> {
  const config = join(folder, 'textgate.yaml');
  writeFileSync(config, configFor(upstreamUrl));
  const stdio: StdioOptions = ['ignore', stdout, 'pipe'];
  const child = spawn(process.execPath, ['--import', threadKiller, main, 'serve', '--config', config], {
    cwd: folder,
    env: { PATH: process.env['PATH'] },
    stdio,
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const [url, adminUrl] = await addressesOf(child);
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(adminUrl + path, {
      ...init,
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    });
  return {
    url,
    child,
    readiness: () =>
      ask('/readyz', { signal: AbortSignal.timeout(1_000) }).then(
        ({ status }) => status,
        () => 0,
      ),
    async createKey(name, balance) {
      const response = await ask('/admin/keys', { method: 'POST', body: JSON.stringify({ name, balance }) });
      const { key } = (await response.json()) as { key: string };
      return key;
    },
    async end() {
      if (child.exitCode === null) child.kill('SIGTERM');
      const code = await Promise.race([
        ended.then(([found]) => found ?? -1),
        wait(maxExitMs, 'stuck' as const),
      ]);
      if (code === 'stuck') child.kill('SIGKILL');
      await ended;
      return code;
    },
  };
}

/** The addresses that it prints on standard error when it listens. */
async function addressesOf({ stderr }: ChildProcess): Promise<readonly [string, string]> {
  let printed = '';
  for await (const chunk of stderr ?? []) {
    printed += String(chunk);
    const match = /(http:\S+)\/v1 \(admin: (http:[^)]+)\)/.exec(printed);
    if (match === null) continue;
    stderr?.resume();
    return [match[1] ?? '', match[2] ?? ''];
  }
  throw new Error(`textgate did not start: ${printed}`);
}

function configFor(upstreamUrl: string): string {
  return JSON.stringify({
    server: { port: 0, drain: '3s' },
    admin: { port: 0, token: adminToken },
    limits: { concurrency: 100, requestsPerMinute: 10_000_000 },
    upstreams: { numbered: { url: upstreamUrl } },
    models: { small: { routes: [{ upstream: 'numbered', model: 'tiny' }], price: configuredPrice } },
  });
}
