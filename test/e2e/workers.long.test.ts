import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { allEnded, childrenOf, isRunning, serveWorkers, workersIn } from '../support/served-workers.ts';
import type { Asked, ServedWorkers, WorkersOptions } from '../support/served-workers.ts';
import { signalAgain, startTextgate } from '../support/textgate-process.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

/** The time that a test may take, in milliseconds: several processes are started. */
const slow = 90_000;

/** Within this time a primary process hands over a connection that it has, in milliseconds. */
const handedOverMs = 500;

/** How a stream ended: as a whole, or with what was read of it. */
function endOf({ text }: Asked): string {
  return text.includes('and the end') && text.endsWith('data: [DONE]\n\n') ? 'completed' : text;
}

const fourCompleted = ['completed', 'completed', 'completed', 'completed'];

/** How many records were closed because their process had ended. */
async function countLost({ url }: TestDatabase): Promise<number> {
  const [row] = await onServer("SELECT count(*) AS lost FROM records WHERE outcome = 'lost'", url);
  return Number(row?.['lost']);
}

describe.skipIf(postgresAbsence !== null)('two workers on one port', () => {
  let database: TestDatabase;
  let upstream: ScriptedUpstream;
  beforeEach(async () => {
    database = await createDatabase();
    upstream = await startUpstream();
    upstream.play(sayTexts(['Hello']));
  });
  afterEach(async () => {
    await upstream.close();
    await database.drop();
  });

  async function start(options: Partial<WorkersOptions> = {}): Promise<ServedWorkers> {
    const served = await serveWorkers({
      databaseUrl: database.url,
      upstreamUrl: upstream.url,
      ...options,
    });
    // Before the database is dropped: the test's own end only kills the primary process.
    onTestFinished(async () => {
      const pids = served.pids();
      served.server.signal('SIGKILL');
      await allEnded(pids);
    });
    return served;
  }

  /** Opens four streams, one after the other, so that each worker has some of them. */
  async function openStreams(served: ServedWorkers): Promise<readonly Promise<Asked>[]> {
    const streams: Promise<Asked>[] = [];
    while (streams.length < 4) {
      streams.push(served.ask({ stream: true }));
      await eventually('the stream has begun', () => upstream.running === streams.length);
    }
    return streams;
  }

  /** Streams that have delivered their first text and wait for the rest. */
  function holdStreams(): { finish: () => void } {
    const frames = chatFrames(['the beginning', ' and the end']);
    const finished = Promise.withResolvers<void>();
    upstream.play(async (response) => {
      sendStream(response, frames.slice(0, 2));
      await finished.promise;
      response.end(frames.slice(2).join(''));
    });
    return { finish: () => finished.resolve() };
  }

  test(
    'share the requests; one prints the start, their metrics add up, and every line of the log has a worker',
    async () => {
      const served = await start();
      const asked = await Promise.all(Array.from({ length: 40 }, () => served.ask()));
      expect(asked.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200));
      expect(served.pids()).toHaveLength(2);
      expect(workersIn(served.server.output())).toEqual(new Set([1, 2]));
      const metrics = await served.readMetrics();
      expect(metrics).toMatch(/^textgate_requests_total\{.*status="200"\} 40$/m);
      expect(metrics).toContain('textgate_requests_in_flight{protocol="chat"} 0');
      expect(metrics).toContain('textgate_upstream_state{upstream="local"} 2');
      expect(metrics).toMatch(/^textgate_overhead_seconds_count\{phase="dispatch"\} 40$/m);
      // Whichever of them is asked.
      for (let time = 0; time < 2; time++)
        expect(await served.admin('GET', '/status')).toMatchObject({
          state: 'ready',
          recent: { requests: 40, endings: { completed: 40 } },
          upstreams: { local: { state: 'ok' } },
        });
      const errors = served.server.errors();
      expect(errors.match(/textgate serves/g)).toHaveLength(1);
      expect(errors.match(/This is your first key/g)).toHaveLength(1);
    },
    slow,
  );

  test(
    'share the slots of a key: never more of its requests are with the upstream than it may have',
    async () => {
      const served = await start({ keySettings: { concurrency: 3 } });
      const { finish } = holdStreams();
      const asked = Array.from({ length: 30 }, () => served.ask({ stream: true }));
      let refused = 0;
      for (const each of asked) void each.then(({ status }) => (refused += status === 429 ? 1 : 0));
      await eventually('all but three are refused', () => refused === 27);
      await eventually('those are with the upstream', () => upstream.seen.length >= 3);
      finish();
      const all = await Promise.all(asked);
      expect(all.filter(({ status }) => status === 200)).toHaveLength(3);
      expect(upstream.seen).toHaveLength(3);
    },
    slow,
  );

  test(
    'are replaced one by one on SIGUSR2 without a lost connection or an interrupted stream, and keep their counts',
    async () => {
      const served = await start();
      const before = served.pids();
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      upstream.play(sayTexts(['Hello']));
      const statuses = new Map<number | string, number>();
      const done = new AbortController();
      let asked = 0;
      const client = async (): Promise<void> => {
        while (!done.signal.aborted) {
          const { status } = await served.ask();
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          asked++;
        }
      };
      const clients = [client(), client(), client(), client()];
      served.server.signal('SIGUSR2');
      await eventually('connections were opened meanwhile', () => asked > 200);
      finish();
      await served.server.printed(/all workers are replaced: 2 take requests/);
      done.abort();
      await Promise.all(clients);
      expect([...statuses]).toEqual([[200, asked]]);
      expect((await Promise.all(streams)).map(endOf)).toEqual(fourCompleted);
      const after = served.pids();
      expect(after).toHaveLength(2);
      expect(after.filter((pid) => before.includes(pid))).toEqual([]);
      const metrics = await served.readMetrics();
      const counted = /^textgate_requests_total\{.*mode="sync".*status="200"\} (\d+)$/m.exec(metrics)?.[1];
      expect(counted).toBe(String(asked));
      expect(await countLost(database)).toBe(0);
    },
    slow,
  );

  test(
    'one that is killed is replaced, the streams of the other go on, and its slots and records are closed',
    async () => {
      const served = await start({ keySettings: { concurrency: 5 } });
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      const [victim = 0, other = 0] = served.pids();
      process.kill(victim, 'SIGKILL');
      await served.server.printed(/worker ended: another one replaces it/);
      await eventually('there are two workers again', () => served.pids().length === 2);
      expect(served.pids()).toContain(other);
      upstream.play(sayTexts(['Hello']));
      await eventually('the new one takes requests', async () => {
        await served.ask();
        return workersIn(served.server.output()).has(3);
      });
      finish();
      const completed = (await Promise.all(streams)).map(endOf).filter((end) => end === 'completed');
      expect(completed.length).toBeGreaterThan(0);
      expect(completed.length).toBeLessThan(4);
      // The lease of the killed one ends 15 s after its last renewal.
      await eventually(
        'its open records are closed',
        async () => (await countLost(database)) === 4 - completed.length,
        60_000,
      );
      expect((await served.admin('GET', '/ledger')).faults).toEqual([]);
      upstream.play(sayTexts(['Hello']));
      await eventually('all five slots of the key are free', async () => {
        const asked = await Promise.all(Array.from({ length: 5 }, () => served.ask()));
        return asked.every(({ status }) => status === 200);
      });
    },
    slow,
  );

  test(
    'show upstreams and shadow routes as one, whichever of them is asked',
    async () => {
      const served = await start();
      const routes = [{ upstream: 'local', model: 'tiny' }];
      const shadow = { route: { upstream: 'other', model: 'big' }, share: 1, free: true, maxInFlight: 8 };
      served.configure({
        upstreams: { local: { url: upstream.url, maxInFlight: 8 }, other: { url: upstream.url } },
        models: {
          small: { routes, free: true, policy: 'fastest' },
          compared: { routes, free: true, shadow },
        },
      });
      served.server.signal('SIGHUP');
      await served.server.printed(/config reloaded/);
      const asked = await Promise.all(Array.from({ length: 8 }, () => served.ask({ model: 'compared' })));
      expect(asked.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
      // Beside each other, so that each has a connection of its own, and both workers are asked.
      const ask = (path: string) => Promise.all(Array.from({ length: 4 }, () => served.admin('GET', path)));
      await eventually('the shadows of both are counted', async () =>
        (await ask('/shadow')).every(
          ({ data: [view] }) => view.means.pairs === 8 && view.max_in_flight === 16,
        ),
      );
      await eventually('nothing runs any more', () => upstream.running === 0);
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      await eventually('all of them say the same', async () =>
        (await ask('/upstreams')).every(
          ({ data: [local] }) =>
            local.attempts.ok === 8 &&
            local.limiter.in_flight === 4 &&
            local.routes.data[0].measured.in_flight === 4,
        ),
      );
      finish();
      expect((await Promise.all(streams)).map(endOf)).toEqual(fourCompleted);
    },
    slow,
  );

  test(
    'a connection that was just handed to a killed worker is closed, so that its client can try again',
    async () => {
      const served = await start();
      const pids = served.pids();
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      const clients = [openRaw(served.url), openRaw(served.url)];
      await Promise.all(
        clients.map(({ socket }) => new Promise((resolve) => void socket.once('connect', resolve))),
      );
      process.kill(pids[0] ?? 0, 'SIGKILL');
      await eventually('one of them is closed', () => clients.some(({ isClosed }) => isClosed()));
      process.kill(pids[1] ?? 0, 'SIGCONT');
    },
    slow,
  );

  test(
    'finish their streams on SIGTERM, and the process ends with 0 when both have ended',
    async () => {
      const served = await start();
      const pids = served.pids();
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      served.server.signal('SIGTERM');
      await served.server.printed(/shutting down; waiting for requests in progress/);
      await eventually('no connection is taken', async () => (await served.ask()).status === 'ECONNREFUSED');
      finish();
      expect((await Promise.all(streams)).map(endOf)).toEqual(fourCompleted);
      const { code, stderr } = await served.server.finished;
      expect(code).toBe(0);
      expect(stderr.match(/shutting down/g)).toHaveLength(1);
      await allEnded(pids);
    },
    slow,
  );

  test(
    'answer that they are not ready for server.shutdownDelay after SIGTERM, take requests, and end at a second signal',
    async () => {
      const served = await start({ server: { shutdownDelay: '1h' } });
      const pids = served.pids();
      served.server.signal('SIGTERM');
      await served.server.printed(/shutting down in 1h; requests are taken until then/);
      const isUnready = async () => (await fetch(`${served.adminUrl}/readyz`)).status === 503;
      await eventually('all of them say so', async () => (await isUnready()) && (await isUnready()));
      expect((await Promise.all([served.ask(), served.ask()])).map(({ status }) => status)).toEqual([
        200, 200,
      ]);
      process.kill(pids[0] ?? 0, 'SIGKILL');
      await served.server.printed(/worker ended: another one replaces it/);
      await eventually('there are two again', () => served.pids().length === 2);
      expect((await served.ask()).status).toBe(200);
      const next = served.pids();
      await signalAgain(served.server);
      expect((await served.server.finished).code).toBe(1);
      await allEnded(next);
    },
    slow,
  );

  test(
    'take no more connections after server.shutdownDelay',
    async () => {
      const served = await start({ server: { shutdownDelay: '100ms' } });
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      served.server.signal('SIGTERM');
      await served.server.printed(
        /shutting down in 100ms[^]*shutting down; waiting for requests in progress/,
      );
      await eventually('no connection is taken', async () => (await served.ask()).status === 'ECONNREFUSED');
      finish();
      expect((await Promise.all(streams)).map(endOf)).toEqual(fourCompleted);
      const { code, stderr } = await served.server.finished;
      expect(code).toBe(0);
      expect(stderr.match(/shutting down/g)).toHaveLength(2);
    },
    slow,
  );

  test(
    'finish their streams and end when the primary process is killed',
    async () => {
      const served = await start();
      const pids = served.pids();
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      served.server.signal('SIGKILL');
      await eventually('the primary process is gone', () => !isRunning(served.server.pid ?? 0));
      finish();
      expect((await Promise.all(streams)).map(endOf)).toEqual(fourCompleted);
      await allEnded(pids);
    },
    slow,
  );

  test(
    'finish their streams when the primary process is killed right after it handed over connections',
    async () => {
      const served = await start();
      const pids = served.pids();
      const { finish } = holdStreams();
      const streams = await openStreams(served);
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      const opened = [1, 2, 3, 4].map(() => openRaw(served.url));
      await eventually('the connections are taken', () => opened.every(({ socket }) => !socket.connecting));
      // The primary process answers nothing that would tell that it has handed them over.
      await wait(handedOverMs);
      served.server.signal('SIGKILL');
      await eventually('the primary process is gone', () => !isRunning(served.server.pid ?? 0));
      for (const pid of pids) process.kill(pid, 'SIGCONT');
      finish();
      expect((await Promise.all(streams)).map(endOf)).toEqual(fourCompleted);
      await allEnded(pids);
    },
    slow,
  );

  test(
    'reload the config together on SIGHUP; a bad one is reported and counted, and the old one stays',
    async () => {
      const served = await start();
      const models = { large: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } };
      served.configure({ models, server: { port: 0, workers: 3 } });
      served.server.signal('SIGHUP');
      await served.server.printed(/config reloaded: .*count from the next start on: server\.workers/);
      const asked = await Promise.all(Array.from({ length: 8 }, () => served.ask({ model: 'large' })));
      expect(asked.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
      served.configure({
        models: { large: { routes: [{ upstream: 'unknown', model: 'tiny' }], free: true } },
      });
      served.server.signal('SIGHUP');
      await served.server.printed(/config reload failed/);
      await eventually('the failure is counted', async () =>
        /^textgate_config_reloads_total\{result="failed"\} [1-9]/m.test(await served.readMetrics()),
      );
      const still = await served.ask({ model: 'large' });
      expect(still.status).toBe(200);
    },
    slow,
  );

  test.each([
    ['SIGHUP', /config reloaded/],
    ['SIGUSR2', /all workers are replaced: 2 take requests/],
  ] as const)(
    'obey a %s that comes while they start, once all take requests',
    async (signalDuringStart, said) => {
      const served = await start({ signalDuringStart });
      await served.server.printed(said);
      const { status } = await served.ask();
      expect(status).toBe(200);
    },
    slow,
  );

  test(
    'become as many as the config says when they are replaced',
    async () => {
      const served = await start();
      served.configure({ server: { port: 0, workers: 3 } });
      served.server.signal('SIGUSR2');
      await served.server.printed(/all workers are replaced: 3 take requests/);
      expect(childrenOf(served.server.pid ?? 0)).toHaveLength(3);
    },
    slow,
  );

  test(
    'are not started where the port is in use: the reason is printed once',
    async () => {
      const served = await start();
      const { port } = new URL(served.url);
      served.configure({ server: { port: Number(port), workers: 2 } });
      const second = startTextgate(['serve', '--config', 'textgate.yaml'], served.folder);
      const { code, stderr } = await second.finished;
      expect(code).toBe(1);
      expect(stderr.match(/port \d+ is in use/g)).toHaveLength(1);
    },
    slow,
  );
});
