import { once } from 'node:events';
import { createWriteStream, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../../support/free-port.ts';
import type { PostgresServer } from '../../support/postgres-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { serveConfig } from '../served-process.ts';
import type { ServedProcess } from '../served-process.ts';
import type { CuttingTarget } from './cutting-proxy.ts';
import { price } from './numbered-texts.ts';
import type { NumberedTexts } from './numbered-texts.ts';
import type { Observations } from './observations.ts';

/** For how long what a process has done is still read after it was killed or stopped, in milliseconds. */
const readsMs = 100;

/** A gateway, which is killed and started again on the same ports, and each of whose processes has a number of its own. */
export interface Gateway extends CuttingTarget {
  /** It may be dead at the moment. */
  readonly served: ServedProcess;
  /** What it reaches its database through; `null` over a file. */
  readonly database: TcpProxy | null;
  /** Kills it with SIGKILL, and starts it again; resolves when it is ready. */
  kill(): Promise<void>;
  /** Has it stand still for some milliseconds. */
  pause(lastsMs: number): Promise<void>;
}

/** Gateways on one database. */
export interface Gateways {
  readonly all: readonly Gateway[];
  /** Has all of them end in order; resolves with what went wrong. */
  end(): Promise<readonly string[]>;
}

interface GatewaysOptions {
  readonly folder: string;
  readonly upstream: Pick<NumberedTexts, 'urlFor'>;
  /** Where traces are sent. */
  readonly collectorUrl: string;
  /** The server of the database of two gateways; `null` is one gateway over a file. */
  readonly server: PostgresServer | null;
  readonly observations: Observations;
}

export async function startGateways(options: GatewaysOptions): Promise<Gateways> {
  const all: Gateway[] = [];
  for (const at of options.server === null ? [0] : [0, 1]) all.push(await startGateway(at, options));
  return {
    all,
    async end() {
      const codes = await Promise.all(all.map(({ served }) => served.end()));
      for (const { database } of all) await database?.close();
      return codes.filter((code) => code !== 0).map((code) => `a gateway ended with ${code}`);
    },
  };
}

async function startGateway(
  at: number,
  { folder, upstream, collectorUrl, server, observations }: GatewaysOptions,
): Promise<Gateway> {
  const place = join(folder, `gateway-${at}`);
  mkdirSync(join(place, 'tmp'), { recursive: true });
  const [port, adminPort] = [await freePort(), await freePort()];
  const database = server === null ? null : await startTcpProxy({ host: '127.0.0.1', port: server.port });
  const storage =
    server === null || database === null
      ? {}
      : {
          storage: { url: server.url(database.port), spool: join(place, 'spool') },
          resume: { nodes: { host: '127.0.0.1', token: 'the-token-of-the-nodes-of-a-chaos-run' } },
        };
  const serve = async (number: number): Promise<ServedProcess> => {
    observations.noteForAll({ what: 'started', process: number });
    const served = await serveConfig({
      folder: place,
      adminPort,
      // All that it writes is in its folder, where its texts are searched for.
      stdout: openSync(join(place, 'log'), 'a'),
      environment: { TMPDIR: join(place, 'tmp'), OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl },
      config: {
        server: { port },
        ...storage,
        limits: { concurrency: 1_000, requestsPerMinute: 10_000_000 },
        upstreams: { numbered: { url: upstream.urlFor(number) } },
        models: { small: { routes: [{ upstream: 'numbered', model: 'm' }], price } },
      },
    });
    served.child.stderr?.pipe(createWriteStream(join(place, 'errors'), { flags: 'a' }));
    return served;
  };
  let number = observations.nextNumber();
  let current = await serve(number);
  return {
    port,
    database,
    get process() {
      return number;
    },
    get served() {
      return current;
    },
    async kill() {
      const ended = once(current.child, 'exit');
      const noteKilled = observations.beginEnd(number, 'killed');
      current.child.kill('SIGKILL');
      await ended;
      await wait(readsMs);
      noteKilled();
      number = observations.nextNumber();
      current = await serve(number);
    },
    async pause(lastsMs) {
      const noteStopped = observations.beginEnd(number, 'stopped');
      current.child.kill('SIGSTOP');
      await wait(readsMs);
      noteStopped();
      await wait(Math.max(0, lastsMs - readsMs));
      observations.noteForAll({ what: 'goes on', process: number });
      current.child.kill('SIGCONT');
    },
  };
}
