import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { eventually } from './eventually.ts';
import { startUpstream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { isOnlyListed } from './services.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';
import { spawnTextgate, startTextgate } from './textgate-process.ts';
import type { TextgateProcess } from './textgate-process.ts';
import { createDatabase } from './test-postgres.ts';

const adminToken = 'an-admin-token-for-tests';

/** A gateway that runs in several worker processes. */
export interface ServedWorkers {
  readonly server: TextgateProcess;
  readonly folder: string;
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
  /** The process ids of its workers. */
  pids(): readonly number[];
  /** Writes the config anew, with changed sections. */
  configure(changes: object): void;
  /** Requests a text on a connection of its own. */
  ask(body?: object): Promise<Asked>;
  readMetrics(): Promise<string>;
  /** Sends a request to the admin listener; returns the parsed body. */
  // eslint-disable-next-line typescript/no-explicit-any -- tests check what they read by their expectations
  admin(method: string, path: string, body?: object): Promise<any>;
}

/** What became of a request: its answer, or the code of the connection's error. */
export interface Asked {
  readonly status: number | string;
  readonly text: string;
}

/** The options of a start. */
export interface WorkersOptions {
  readonly databaseUrl: string;
  readonly upstreamUrl: string;
  readonly server?: object;
  readonly limits?: object;
  readonly keySettings?: object;
  /** Changed sections, which are written to the config when the first worker takes requests. */
  readonly changesDuringStart?: object;
  /** A signal that is sent when the first worker takes requests. */
  readonly signalDuringStart?: 'SIGHUP' | 'SIGUSR2';
  /** The program's file, unless it is that of the sources. */
  readonly program?: string;
}

/** Starts two workers on free ports, over a database of the test's own; they end with the test at the latest. */
export function serveWorkers(options: WorkersOptions): Promise<ServedWorkers> {
  return serveWorkersIn(makeTemporaryFolder(), startTextgate, options);
}

async function serveWorkersIn(
  folder: string,
  start: typeof startTextgate,
  options: WorkersOptions,
): Promise<ServedWorkers> {
  const file = join(folder, 'textgate.yaml');
  const config = {
    server: { port: 0, workers: 2, drain: '10s', ...options.server },
    admin: { port: 0, token: adminToken },
    storage: { url: options.databaseUrl, spool: 'spool' },
    limits: { concurrency: 1_000, requestsPerMinute: 1_000_000, ...options.limits },
    upstreams: { local: { url: options.upstreamUrl } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
  };
  const configure = (changes: object): void => writeFileSync(file, JSON.stringify({ ...config, ...changes }));
  configure({});
  const outputs = options.program === undefined ? {} : { program: options.program };
  const server = start(['serve', '--config', 'textgate.yaml'], folder, {}, outputs);
  const [, url = '', adminUrl = ''] = await server.printed(/serves (\S+)\/v1 \(admin: (\S+)\)/);
  if (options.changesDuringStart !== undefined) configure(options.changesDuringStart);
  if (options.signalDuringStart !== undefined) server.signal(options.signalDuringStart);
  await server.printed(/workers take requests/);
  const admin: ServedWorkers['admin'] = async (method, path, body) => {
    const response = await fetch(`${adminUrl}/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return response.json();
  };
  const { key } = (await admin('POST', '/keys', { name: 'test', ...options.keySettings })) as { key: string };
  return {
    server,
    folder,
    url,
    adminUrl,
    key,
    pids: () => childrenOf(server.pid ?? 0),
    configure,
    ask: (body = {}) => askOnce(url, key, body),
    readMetrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    admin,
  };
}

/** Two workers in front of a scripted upstream, for all tests of a file; everything ends after the last one. */
export async function openWorkersStage(
  options: Omit<WorkersOptions, 'databaseUrl' | 'upstreamUrl'> = {},
): Promise<{ readonly upstream: ScriptedUpstream; readonly gateway: ServedWorkers }> {
  // No hook would end them.
  if (isOnlyListed) return { gateway: { key: '' } } as Awaited<ReturnType<typeof openWorkersStage>>;
  const [database, upstream] = await Promise.all([createDatabase(), startUpstream()]);
  const folder = mkdtempSync(join(tmpdir(), 'textgate-workers-'));
  const addresses = { databaseUrl: database.url, upstreamUrl: upstream.url };
  const gateway = await serveWorkersIn(folder, spawnTextgate, { ...options, ...addresses });
  afterAll(async () => {
    const pids = gateway.pids();
    gateway.server.signal('SIGKILL');
    await gateway.server.finished;
    for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL');
    await allEnded(pids);
    await upstream.close();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });
  return { upstream, gateway };
}

/** The processes that a process has started and that have not ended; none of one that has ended itself. */
export function childrenOf(pid: number): readonly number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return text.split(' ').filter(Boolean).map(Number);
}

/** The workers that wrote the log lines of requests. */
export function workersIn(output: string): ReadonlySet<unknown> {
  const lines = output.split('\n').filter((line) => line.includes('"msg":"request"'));
  return new Set(lines.map((line) => (JSON.parse(line) as { worker?: number }).worker));
}

/** Whether a process runs. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Waits until none of some processes runs any more. */
export async function allEnded(pids: readonly number[]): Promise<void> {
  await eventually('all workers have ended', () => !pids.some(isRunning));
}

/** A request on a connection that is opened for it alone. */
function askOnce(url: string, key: string, body: object): Promise<Asked> {
  const text = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }], ...body });
  const agent = new Agent({ keepAlive: false });
  return new Promise((resolve) => {
    const sent = request(
      `${url}/v1/chat/completions`,
      {
        agent,
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      },
      (response) => {
        let answer = '';
        response.setEncoding('utf8').on('data', (part: string) => (answer += part));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: answer }));
        response.on('error', (error: NodeJS.ErrnoException) =>
          resolve({ status: error.code ?? 'unknown', text: answer }),
        );
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) =>
      resolve({ status: error.code ?? 'unknown', text: '' }),
    );
    sent.end(text);
  });
}
