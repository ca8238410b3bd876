import { fork, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../src/storage/engine.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { fillDatabase } from '../support/filled-database.ts';
import type { HoldersOrder, HoldersResult } from './child-holders.ts';
import type { LoadOrder, LoadResult } from './child-load.ts';
import { programFile } from '../support/program.ts';

const adminToken = 'an-admin-token-for-benches';

/** A gateway on a filled database, its upstream and its load generator, each in a process of its own. */
export interface BenchGateway {
  readonly folder: string;
  /** Its address for clients. */
  readonly url: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Runs a load; one at a time. */
  load(order: LoadOrder['load'], keys: number): Promise<LoadResult>;
  /** Has the holders of some keys read their lists without a pause; resolves with what ends it, and says what they got. */
  readLists(order: Omit<HoldersOrder, 'url'>): () => Promise<HoldersResult>;
  /** Reads from the admin listener; resolves with the duration in milliseconds. */
  time(path: string): Promise<number>;
  /** The longest commit of a block beside the database since the last call, in milliseconds: no answer can be sooner. */
  diskDelayMs(): Promise<number>;
  readonly forget: { readonly url: string; readonly token: string };
  close(): Promise<void>;
}

/** All started processes: they are killed when this one exits. */
const children: ChildProcess[] = [];
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

export async function startBenchGateway(filling: {
  readonly keys: number;
  readonly records: number;
  /** The time of the first record, in milliseconds since 1970. */
  readonly startMs?: number;
  /** Another upstream, which serves the model `held`. */
  readonly heldUrl?: string;
  /** An empty PostgreSQL database to which all of it is moved, instead of the file. */
  readonly postgresUrl?: string;
  /** Writes more into the database before the keys and the records. */
  readonly prepare?: (engine: Engine) => Promise<void>;
}): Promise<BenchGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'textgate.db');
  const engine = openThreadedEngine(file);
  await engine.ready;
  await filling.prepare?.(engine);
  await engine.close();
  fillDatabase(file, { ...filling, models: ['small', 'large'] });

  if (filling.postgresUrl !== undefined) {
    const move = spawn(process.execPath, [programFile, 'migrate', `sqlite:${file}`, filling.postgresUrl]);
    const [code] = (await once(move, 'close')) as [number | null];
    if (code !== 0) throw new Error('the filled database could not be moved to PostgreSQL');
  }

  const upstream = startChild('child-upstream.ts');
  const [port] = (await once(upstream, 'message')) as [number];
  const config = join(folder, 'textgate.yaml');
  writeFileSync(
    config,
    JSON.stringify(
      configOf(filling.postgresUrl ?? `sqlite:${file}`, `http://127.0.0.1:${port}/v1`, filling.heldUrl),
    ),
  );
  const gateway = spawn(process.execPath, [programFile, 'serve', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: folder,
  });
  children.push(gateway);
  const [url = '', adminUrl = ''] = await listening(gateway);
  const loader = startChild('child-load.ts');
  const reader = startChild('child-holders.ts');
  const disk = startChild('child-disk.ts', folder);
  return {
    folder,
    url,
    environment: { TEXTGATE_ADMIN_URL: adminUrl, TEXTGATE_ADMIN_TOKEN: adminToken },
    forget: { url: adminUrl, token: adminToken },
    async load(load, keys) {
      loader.send({ url, keys, load } satisfies LoadOrder);
      const [result] = (await once(loader, 'message')) as [LoadResult];
      return result;
    },
    readLists(order) {
      reader.send({ ...order, url } satisfies HoldersOrder);
      return async () => {
        reader.send({ ...order, url, holders: 0 } satisfies HoldersOrder);
        const [result] = (await once(reader, 'message')) as [HoldersResult];
        return result;
      };
    },
    async diskDelayMs() {
      disk.send('');
      const [longestMs] = (await once(disk, 'message')) as [number];
      return longestMs;
    },
    async time(path) {
      const startedMs = performance.now();
      const response = await fetch(`${adminUrl}/admin${path}`, {
        headers: { authorization: `Bearer ${adminToken}` },
      });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`${path}: status ${response.status}`);
      return performance.now() - startedMs;
    },
    async close() {
      gateway.kill('SIGTERM');
      await once(gateway, 'close');
      upstream.kill();
      loader.kill();
      reader.kill();
      disk.kill();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The result of a load, in one line. */
export function shown(found: LoadResult): string {
  const failures = Object.entries(found.failures).map(([status, count]) => `, ${count} x ${status}`);
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  return (
    `${found.answers} answers${failures.join('')}: median ${ms(found.medianMs)}, p99 ${ms(found.p99Ms)}, ` +
    `max ${ms(found.maxMs)}, longest gap ${ms(found.longestGapMs)}, after ${(found.gapEndMs / 1_000).toFixed(1)} s ` +
    `(the load's own delay: ${ms(found.ownDelayMs)})`
  );
}

function startChild(file: string, ...args: readonly string[]): ChildProcess {
  const child = fork(join(import.meta.dirname, file), args);
  children.push(child);
  return child;
}

function configOf(storage: string, upstreamUrl: string, heldUrl?: string): object {
  const model = (upstream: string): object => ({
    routes: [{ upstream, model: 'tiny' }],
    price: { input: '1', output: '2' },
  });
  return {
    server: { port: 0 },
    admin: { port: 0, token: adminToken },
    storage: { url: storage },
    limits: { concurrency: 1_000, requestsPerMinute: 10_000_000 },
    upstreams: { local: { url: upstreamUrl }, ...(heldUrl === undefined ? {} : { held: { url: heldUrl } }) },
    models: {
      small: model('local'),
      large: model('local'),
      ...(heldUrl === undefined ? {} : { held: model('held') }),
    },
  };
}

/** The addresses that a gateway prints: for clients, and for operators. */
function listening(gateway: ReturnType<typeof spawn>): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    let printed = '';
    gateway.stderr?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      const match = /serves (\S+)\/v1 \(admin: (\S+)\)/.exec(printed);
      if (match !== null) resolve(match.slice(1));
    });
    gateway.once('close', () => reject(new Error(`the gateway ended: ${printed}`)));
  });
}
