import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { configuredPrice } from './numbered-price.ts';
import { programFile } from '../support/program.ts';

const threadKiller = join(import.meta.dirname, 'thread-killer.ts');
const adminToken = 'an-admin-token-for-chaos';

/**
 * How long a process may take to end after SIGTERM before it counts as stuck, in milliseconds: a drain of ten seconds, and
 * what requests that do not end may take after it.
 */
const maxExitMs = 30_000;

/** `textgate serve` in a process of its own, from source, with its database in `folder`. */
export interface ServedProcess {
  readonly url: string;
  readonly adminUrl: string;
  /** The token of its admin API. */
  readonly adminToken: string;
  readonly child: ChildProcess;
  /** The status of `/readyz`; 0 without an answer within a second. */
  readiness(): Promise<number>;
  /** Creates a key with this balance in USD. */
  createKey(name: string, balance: string): Promise<string>;
  /** Sends a request to the admin API; returns the parsed body. */
  ask(method: string, path: string, body?: object): Promise<unknown>;
  /** Sends SIGTERM unless it has ended; resolves with the exit code, or `stuck` if it had to be killed. */
  end(): Promise<number | 'stuck'>;
}

/** The database file of a process that was started in `folder`. */
export function databaseIn(folder: string): string {
  return join(folder, 'data', 'textgate.db');
}

/** Starts one on a database file; `stdout` is the destination of its log. SIGUSR2 terminates its database thread. */
export async function serveIn(
  folder: string,
  upstreamUrl: string,
  stdout: number | 'pipe' | 'ignore' = 'ignore',
): Promise<ServedProcess> {
  return serveConfig({ folder, config: configFor(upstreamUrl), imports: [threadKiller], stdout });
}

interface ServeOptions {
  /** Where it runs, and has its config. */
  readonly folder: string;
  readonly config: object;
  /** The port of its admin API; without one it is any that is free. */
  readonly adminPort?: number;
  /** Modules that are loaded before its own code. */
  readonly imports?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** The destination of its log. */
  readonly stdout?: number | 'pipe' | 'ignore';
  /** The limit of open files of its process; that of this process without it. */
  readonly maxOpenFiles?: number;
  /** Options of Node for its process. */
  readonly nodeOptions?: readonly string[];
}

/** Starts one with a config, to which the token of its admin API is added. */
export async function serveConfig({
  folder,
  config,
  adminPort = 0,
  imports = [],
  environment = {},
  stdout = 'ignore',
  maxOpenFiles,
  nodeOptions = [],
}: ServeOptions): Promise<ServedProcess> {
  const file = join(folder, 'textgate.yaml');
  writeFileSync(file, JSON.stringify({ ...config, admin: { port: adminPort, token: adminToken } }));
  const stdio: StdioOptions = ['ignore', stdout, 'pipe'];
  const loaded = imports.flatMap((path) => ['--import', path]);
  const command = [process.execPath, ...nodeOptions, ...loaded, programFile, 'serve', '--config', file];
  const limited = maxOpenFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${maxOpenFiles}; exec "$0" "$@"`];
  const [program = '', ...args] = [...limited, ...command];
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...environment,
    },
    stdio,
  });
  // Whatever ends this process, no gateway goes on without it.
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const [url, adminUrl] = await addressesOf(child);
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(adminUrl + path, {
      ...init,
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    });
  return {
    url,
    adminUrl,
    adminToken,
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
    async ask(method, path, body) {
      const response = await ask(`/admin${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return response.json();
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

function configFor(upstreamUrl: string): object {
  return {
    server: { port: 0, drain: '3s' },
    limits: { concurrency: 100, requestsPerMinute: 10_000_000 },
    ...servedModel(upstreamUrl),
  };
}

/** The part of a config that offers the model of a numbered upstream. */
export function servedModel(upstreamUrl: string, upstreamSettings: object = {}): object {
  return {
    upstreams: { numbered: { url: upstreamUrl, ...upstreamSettings } },
    models: { small: { routes: [{ upstream: 'numbered', model: 'tiny' }], price: configuredPrice } },
  };
}
