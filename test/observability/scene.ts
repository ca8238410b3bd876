import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createGateway } from '../../src/index.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

/** The idle timeout of the broken upstream: short, because every round waits for it twice. */
const silence = '200ms';

/** Enough money for every test, in nano-USD. */
const plenty = '1';

const [opening = '', text = '', ...ending] = chatFrames(['one']);

/** A text that is long enough to be sampled, as a question and as an answer. */
const long = Array.from({ length: 80 }, () => 'word').join(' ');

/** How many samples may be needed until the second meter has figures. */
const maxSamples = 1_000;

/** The behaviour of the upstreams, by the text of the request. */
const scripts: Readonly<Record<string, (response: ServerResponse) => void>> = {
  cut: (response) => sendStream(response, []).write(opening + text, () => cut(response, 'rst')),
  failed: (response) => void response.writeHead(500).end(),
  hang: (response) => void sendStream(response, [opening, text]),
  silent: () => {},
  unfinished: (response) => void sendStream(response, [opening, text, ...ending.slice(0, -1)]).end(),
};

/** A gateway with a working and a broken upstream, and a load that produces every outcome. */
export interface Scene {
  readonly adminUrl: string;
  /** Sends the whole load once, and before the first time what the second meter needs; resolves with the number of requests. */
  playRound(): Promise<number>;
  close(): Promise<void>;
}

const price = { input: '1', output: '2' };
const paid = { routes: [{ upstream: 'steady', model: 'tiny' }], price };

/** The names of models for shadows, and of those that take their time, at their upstreams. */
const copy = 'copy';
const late = 'late';

/** How long these take, in milliseconds: long enough for requests to meet, and for a second one beside a slow one. */
const lateMs = 100;
const shadow = { route: { upstream: 'broken', model: copy }, share: 1, price };

export async function openScene(): Promise<Scene> {
  const steady = await startPlayer();
  const broken = await startPlayer();
  const timeouts = { firstByte: silence, idle: silence };
  const folder = mkdtempSync(join(tmpdir(), 'textgate-scene-'));
  const open = async () => {
    const gateway = createGateway(
      {
        server: { port: 0 },
        admin: { port: 0 },
        storage: { url: `sqlite:${join(folder, 'textgate.db')}` },
        metrics: { topKeys: 3 },
        groups: { team: {} },
        metering: { sample: 1 },
        // Nothing listens there: the first charge of the key with a balance is an event, and its delivery fails.
        webhooks: { absent: { url: 'http://127.0.0.1:9/events', secret: 'a secret of sixteen' } },
        limits: { requestsPerMinute: 1_000_000 },
        upstreams: {
          steady: { url: steady.url },
          broken: { url: broken.url, timeouts },
          narrow: {
            url: steady.url,
            maxInFlight: 1,
            requestsPerMinute: 10_000,
            queue: 1,
            models: { [late]: { maxInFlight: 1 } },
          },
        },
        models: {
          small: paid,
          fragile: { routes: [{ upstream: 'broken', model: 'glass' }], free: true },
          waited: { routes: [{ upstream: 'narrow', model: late }], free: true },
          hedged: {
            routes: [
              { upstream: 'steady', model: late },
              { upstream: 'broken', model: 'glass' },
            ],
            hedge: { after: '20ms', budget: '100%' },
            free: true,
          },
          watched: { ...paid, shadow: { ...shadow, budgetPerDay: '1' } },
          // Its budget has no room for the output that is expected.
          unwatched: { ...paid, shadow: { ...shadow, budgetPerDay: '0' } },
        },
      },
      { logLevel: 'silent' },
    );
    return { gateway, ...(await gateway.listen()) };
  };
  // Which keys spend most is read once a minute: a gateway before this one has charged one of them.
  const before = await open();
  const { key: secret } = await before.gateway.keys.create({ name: 'main', balance: plenty, group: 'team' });
  const poor = await before.gateway.keys.create({ name: 'poor', balance: '0' });
  const slow = await before.gateway.keys.create({ name: 'slow', requestsPerMinute: 1 });
  const patient = await before.gateway.keys.create({ name: 'patient', concurrency: 1, queueWait: '5s' });
  await (await post('/v1/responses', { model: 'small', input: 'say' }, secret, null, before.url)).text();
  await before.gateway.close();
  const { gateway, url, adminUrl } = await open();

  let rounds = 0;
  return {
    adminUrl,
    async playRound() {
      const samples = await sample();
      const answers: Promise<unknown>[] = [];
      const ask = (path: string, body: object, key = secret): void =>
        void answers.push(post(path, body, key).then((response) => response.text()));
      const chat = (model: string, content: string, more = {}, key = secret): void =>
        ask('/v1/chat/completions', { model, messages: [{ role: 'user', content }], ...more }, key);
      const settled = async (): Promise<void> => void (await Promise.allSettled(answers));

      const stream = true;
      chat('small', 'say', { stream, temperature: 1 });
      chat('small', 'say');
      await settled();
      chat('small', 'length', { stream });
      ask('/v1/responses', { model: 'small', input: 'say', stream });
      await settled();
      chat('small', 'say', {}, poor.key);
      for (let start = 0; start < 2; start++) chat('small', 'say', {}, slow.key);
      chat('small', 'say', {}, 'sk-wrong');
      await settled();
      chat('small', 'say', { n: 2 });
      chat('unknown', 'say');
      await settled();
      for (const content of ['unfinished', 'cut', 'hang', 'silent', 'failed']) {
        chat('fragile', content, { stream });
        await settled();
      }
      chat('unwatched', 'say');
      for (const content of ['say', 'length', 'failed copy']) {
        chat('watched', content, { stream });
        await settled();
      }
      chat('hedged', 'say', { stream });
      await settled();
      // One runs, one waits, and the queue of the upstream is full for the third; a key's own slot is waited for, too.
      for (const key of [secret, secret, poor.key]) chat('waited', 'say', {}, key);
      for (let start = 0; start < 2; start++) chat('small', 'say', {}, patient.key);
      await settled();
      await leave();
      await cancel();
      await repeat(`round-${++rounds}`);
      return samples + answers.length + 8;
    },
    async close() {
      await gateway.close();
      await Promise.all([steady.close(), broken.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };

  function post(
    path: string,
    body: object,
    key = secret,
    signal: AbortSignal | null = null,
    to = url,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more };
    return fetch(to + path, { method: 'POST', body: JSON.stringify(body), headers, signal });
  }

  /** Sends requests until the second meter has figures; resolves with their number. */
  async function sample(): Promise<number> {
    for (let sent = 0; sent < maxSamples; sent++) {
      if (sent % 20 === 0) {
        const exposed = await (await fetch(`${adminUrl}/metrics`)).text();
        if (exposed.includes('textgate_usage_drift_ratio{')) return sent;
      }
      const messages = [{ role: 'user', content: long }];
      await (await post('/v1/chat/completions', { model: 'small', messages })).text();
    }
    throw new Error('the second meter has no figures');
  }

  /** Opens a stream without end, and reads its beginning. */
  async function openStream(signal: AbortSignal | null = null, more = {}): Promise<Response> {
    const messages = [{ role: 'user', content: 'hang' }];
    const body = { model: 'small', messages, stream: true };
    return post('/v1/chat/completions', body, secret, signal, url, more);
  }

  async function leave(): Promise<void> {
    const leaving = new AbortController();
    await (await openStream(leaving.signal)).body?.getReader().read();
    leaving.abort();
  }

  async function cancel(response?: Response): Promise<void> {
    const cancelled = response ?? (await openStream());
    await post(`/v1/key/requests/${cancelled.headers.get('x-request-id')}/cancel`, {});
    // A cancelled stream breaks off.
    await cancelled.text().catch(() => '');
  }

  /** Sends a request again while it runs, and after it was cancelled behind text; another one after its end, and changed. */
  async function repeat(name: string): Promise<void> {
    const named = { 'idempotency-key': `${name}-joined` };
    const [first, second] = [await openStream(null, named), await openStream(null, named)];
    await cancel(first);
    await second.text().catch(() => '');
    await (await openStream(null, named)).text();
    for (const input of ['say', 'say', 'say something else'])
      await (
        await post('/v1/responses', { model: 'small', input }, secret, null, url, {
          'idempotency-key': name,
        })
      ).text();
  }
}

async function startPlayer(): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  upstream.play(async (response, request) => {
    const { messages, model } = JSON.parse(request.body) as {
      messages: { content: string }[];
      model: string;
    };
    const asked = messages.at(-1)?.content ?? '';
    const isCopy = model === copy;
    const script = isCopy && asked === 'failed copy' ? scripts['failed'] : scripts[asked];
    if (script !== undefined) return script(response);
    if (asked === long) return sayTexts([long])(response, request);
    if (model === late) await pause(lateMs);
    return sayTexts(['one ', 'two'], asked === 'length' && !isCopy ? 'length' : 'stop')(response, request);
  });
  return upstream;
}
