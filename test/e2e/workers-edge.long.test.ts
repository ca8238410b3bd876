import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { chatFrames, sayTexts, sendStream } from '../support/scripted-upstream.ts';
import { openWorkersStage } from '../support/served-workers.ts';
import type { Asked } from '../support/served-workers.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const chat = '/v1/chat/completions';
const streaming = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
const models = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n';

/** The most open connections: an odd number, of which each of two workers has half, rounded down. */
const maxConnections = 41;

const served =
  postgresAbsence === null
    ? await openWorkersStage({ server: { maxConnections, maxAnonymousPerAddress: maxConnections } })
    : null;

describe.skipIf(served === null)('the edge of two workers', () => {
  const { upstream, gateway } = served ?? ({} as NonNullable<typeof served>);

  /** Streams that have delivered their first text and wait for the rest. */
  function holdStreams(): { finish: () => void } {
    const frames = chatFrames(['the beginning', ' and the end']);
    const finished = Promise.withResolvers<void>();
    upstream.play(async (response) => {
      sendStream(response, frames.slice(0, 2));
      await finished.promise;
      response.end(frames.slice(2).join(''));
    });
    onTestFinished(() => finished.resolve());
    return { finish: () => finished.resolve() };
  }

  /** How many requests have been answered with a status, by a scrape that may be handed to either worker. */
  async function countRequests(status: number): Promise<number> {
    // A connection that was handed to a stopped worker waits; the other two are not.
    const text = await Promise.any([1, 2, 3].map(() => gateway.readMetrics()));
    const lines = text.matchAll(/^textgate_requests_total\{(.*)\} (\d+)$/gm);
    return [...lines]
      .filter(([, labels = '']) => labels.includes(`status="${status}"`))
      .reduce((sum, [, , value]) => sum + Number(value), 0);
  }

  test('has no more connections open than one process may have', async () => {
    const clients = Array.from({ length: 60 }, () => openRaw(gateway.url));
    const countOpen = (): number => clients.filter((client) => !client.isClosed()).length;
    await eventually('all are connected or closed', () =>
      clients.every(({ socket, isClosed }) => socket.readyState === 'open' || isClosed()),
    );
    await eventually('those beyond the limit are closed', () => countOpen() <= maxConnections);
    expect(countOpen()).toBeGreaterThan(0);
    const metrics = await gateway.readMetrics();
    const refused = metrics.matchAll(
      /^textgate_connections_refused_total\{reason="(?:listener_full|address_limit|evicted)"\} (\d+)$/gm,
    );
    const counted = [...refused].reduce((sum, [, value]) => sum + Number(value), 0);
    expect(counted).toBeGreaterThanOrEqual(clients.length - maxConnections);
    for (const { socket } of clients) socket.destroy();
    await eventually('there is room again', async () => {
      const client = openRaw(gateway.url);
      client.socket.write(models);
      await eventually('it is answered or closed', () => client.isClosed() || client.text() !== '');
      return client.text().startsWith('HTTP/1.1 401');
    });
  });

  test('keeps connections and streams through a reload, which names what only a restart changes', async () => {
    const { finish } = holdStreams();
    const kept = openRaw(gateway.url);
    kept.socket.write(models);
    await eventually('it is answered', () => kept.text().startsWith('HTTP/1.1 401'));
    const streams = [1, 2, 3, 4].map(() => gateway.ask(streaming));
    await eventually('they have begun', () => upstream.running === 4);
    gateway.configure({ server: { port: 0, workers: 2, maxConnections: 100, maxBody: '2MiB', host: '::1' } });
    gateway.server.signal('SIGHUP');
    await gateway.server.printed(/config reloaded: .*count from the next start on: server\.host/);
    kept.socket.write(models);
    await eventually('it is answered again', () => kept.text().split('HTTP/1.1 401').length === 3);
    finish();
    for (const { status, text } of await Promise.all(streams)) {
      expect(status).toBe(200);
      expect(text).toMatch(/and the end[^]*\[DONE\]\n\n$/);
    }
  });

  test('stops the upstreams of clients that leave, whichever worker has them, and their records say so', async () => {
    holdStreams();
    const before = upstream.aborted;
    const clients = [1, 2, 3, 4].map(() => openRaw(gateway.url));
    for (const client of clients) {
      client.socket.write(rawPost(chat, gateway.key, streaming));
      await eventually('its stream has begun', () => client.text().includes('the beginning'));
    }
    for (const { socket } of clients) socket.destroy();
    await eventually('all are stopped', () => upstream.aborted === before + 4);
    await eventually('all are recorded', async () => {
      const { data } = (await gateway.admin('GET', '/records')) as { data: readonly { outcome: string }[] };
      return data.filter(({ outcome }) => outcome === 'client_closed').length === 4;
    });
  });

  test('lists the running requests of both, and cancels them', async () => {
    holdStreams();
    const streams: Promise<Asked>[] = [];
    while (streams.length < 4) {
      streams.push(gateway.ask(streaming));
      await eventually('it has begun', () => upstream.running === streams.length);
    }
    let listed: readonly { readonly request_id: string; readonly node: string | null }[] = [];
    await eventually('all have their node', async () => {
      listed = (await gateway.admin('GET', '/in-flight')).data;
      return listed.length === 4 && listed.every(({ node }) => node !== null);
    });
    expect(new Set(listed.map(({ node }) => node)).size).toBe(2);
    for (const { request_id: id } of listed) await gateway.admin('POST', `/in-flight/${id}/cancel`);
    for (const { text } of await Promise.all(streams)) expect(text).toContain('request_cancelled');
  });

  test('serves on when one of them hangs: ready, with the sum of all counts, and one connection waits', async () => {
    upstream.play(sayTexts(['Hello']));
    await Promise.all(Array.from({ length: 20 }, () => gateway.ask()));
    const before = await countRequests(200);
    expect(before).toBeGreaterThanOrEqual(20);
    const [hanging = Number.NaN] = gateway.pids();
    process.kill(hanging, 'SIGSTOP');
    onTestFinished(() => void process.kill(hanging, 'SIGCONT'));
    let answered = 0;
    const asked = Array.from({ length: 12 }, async () => {
      const { status } = await gateway.ask();
      if (status === 200) answered++;
    });
    await eventually('all others are answered', () => answered >= 11);
    const probes = [1, 2, 3].map(async () => (await fetch(`${gateway.adminUrl}/readyz`)).status);
    expect(await Promise.any(probes)).toBe(200);
    expect(await countRequests(200)).toBeGreaterThanOrEqual(before + 11);
    process.kill(hanging, 'SIGCONT');
    await Promise.all(asked);
    expect(answered).toBe(12);
  });

  test('counts no fewer requests after one of them was killed, and the next one is delayed when it ends, too', async () => {
    upstream.play(sayTexts(['Hello']));
    await Promise.all(Array.from({ length: 10 }, () => gateway.ask()));
    const before = await countRequests(200);
    const pids = gateway.pids();
    process.kill(pids[0] ?? Number.NaN, 'SIGKILL');
    await gateway.server.printed(/"replacedAfterMs":0,.*worker ended: another one replaces it/);
    expect(await countRequests(200)).toBeGreaterThanOrEqual(before);
    await eventually('there are two workers again', () => gateway.pids().length === 2);
    const successor = gateway.pids().find((pid) => !pids.includes(pid));
    process.kill(successor ?? Number.NaN, 'SIGKILL');
    await gateway.server.printed(/"replacedAfterMs":500,.*worker ended: another one replaces it/);
    const { status } = await gateway.ask();
    expect(status).toBe(200);
    expect(await countRequests(200)).toBeGreaterThanOrEqual(before + 1);
  });
});
