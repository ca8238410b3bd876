import { once } from 'node:events';
import { createWriteStream, mkdirSync, openSync } from 'node:fs';
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
  /** Where traces are sent. */
  readonly collectorUrl: string;
  /** The URL of a database on a server, for two gateways; `null` is one gateway over a file. */
  readonly databaseUrl: string | null;
}

export async function startGateways({
  folder,
  upstreamUrl,
  collectorUrl,
  databaseUrl,
}: GatewaysOptions): Promise<Gateways> {
  const places = await Promise.all(
    Array.from({ length: databaseUrl === null ? 1 : 2 }, async (_, at) => {
      const place = join(folder, `gateway-${at}`);
      mkdirSync(join(place, 'tmp'), { recursive: true });
      return { place, port: await freePort(), adminPort: await freePort() };
    }),
  );
  const serve = async ({ place, port, adminPort }: (typeof places)[number]): Promise<ServedProcess> => {
    const served = await serveConfig({
      folder: place,
      adminPort,
      // All that it writes is in its folder, where its texts are searched for.
      stdout: openSync(join(place, 'log'), 'a'),
      environment: { TMPDIR: join(place, 'tmp'), OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl },
      config: {
        server: { port },
        ...(databaseUrl === null ? {} : { storage: { url: databaseUrl, spool: join(place, 'spool') } }),
        limits: { concurrency: 1_000, requestsPerMinute: 10_000_000 },
        upstreams: { numbered: { url: upstreamUrl } },
        models: { small: { routes: [{ upstream: 'numbered', model: 'm' }], price } },
      },
    });
    served.child.stderr?.pipe(createWriteStream(join(place, 'errors'), { flags: 'a' }));
    return served;
  };
  const all: ServedProcess[] = [];
  for (const place of places) all.push(await serve(place));
  const [first] = all;
  if (first === undefined) throw new Error('no gateway');
  return {
    get first() {
      return all[0] ?? first;
    },
    ports: places.map(({ port }) => port),
    async kill(at) {
      const [victim, place] = [all[at], places[at]];
      if (victim === undefined || place === undefined) return;
      const ended = once(victim.child, 'exit');
      victim.child.kill('SIGKILL');
      await ended;
      all[at] = await serve(place);
    },
    async end() {
      const codes = await Promise.all(all.map((one) => one.end()));
      return codes.filter((code) => code !== 0).map((code) => `a gateway ended with ${code}`);
    },
  };
}
