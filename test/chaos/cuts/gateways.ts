import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { serveConfig } from '../served-process.ts';
import type { ServedProcess } from '../served-process.ts';
import { price } from './numbered-texts.ts';

/** Gateways on one database, which are killed and started again on the same ports. */
export interface Gateways {
  /** One of them, which may be dead at the moment. */
  readonly first: ServedProcess;
  /** The ports of all. */
  readonly ports: readonly number[];
  /** Kills one with SIGKILL, and starts it again; resolves when it is ready. */
  kill(at: number): Promise<void>;
  /** Has all of them end in order; resolves with what went wrong. */
  end(): Promise<readonly string[]>;
}

interface GatewaysOptions {
  readonly folder: string;
  readonly upstreamUrl: string;
  /** The URL of a database on a server, for two gateways; `null` is one gateway over a file. */
  readonly databaseUrl: string | null;
}

export async function startGateways({
  folder,
  upstreamUrl,
  databaseUrl,
}: GatewaysOptions): Promise<Gateways> {
  const places = await Promise.all(
    Array.from({ length: databaseUrl === null ? 1 : 2 }, async (_, at) => {
      const place = join(folder, `gateway-${at}`);
      mkdirSync(place);
      return { place, port: await freePort(), adminPort: await freePort() };
    }),
  );
  const serve = ({ place, port, adminPort }: (typeof places)[number]): Promise<ServedProcess> =>
    serveConfig({
      folder: place,
      adminPort,
      config: {
        server: { port },
        ...(databaseUrl === null ? {} : { storage: { url: databaseUrl, spool: join(place, 'spool') } }),
        limits: { concurrency: 1_000, requestsPerMinute: 10_000_000 },
        upstreams: { numbered: { url: upstreamUrl } },
        models: { small: { routes: [{ upstream: 'numbered', model: 'm' }], price } },
      },
    });
  const served: ServedProcess[] = [];
  for (const place of places) served.push(await serve(place));
  const [first] = served;
  if (first === undefined) throw new Error('no gateway');
  return {
    get first() {
      return served[0] ?? first;
    },
    ports: places.map(({ port }) => port),
    async kill(at) {
      const [victim, place] = [served[at], places[at]];
      if (victim === undefined || place === undefined) return;
      const ended = once(victim.child, 'exit');
      victim.child.kill('SIGKILL');
      await ended;
      served[at] = await serve(place);
    },
    async end() {
      const codes = await Promise.all(served.map((one) => one.end()));
      return codes.filter((code) => code !== 0).map((code) => `a gateway ended with ${code}`);
    },
  };
}
