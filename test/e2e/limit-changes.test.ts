import { expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';

const declaredSecret = 'a-declared-key-for-these-tests';

/** A gateway on a clock that stands still, so that nothing happens that only a look every second would do. */
async function setUp() {
  const upstream = await startUpstream();
  const ended = Promise.withResolvers<void>();
  upstream.play(async (response, request) => {
    await ended.promise;
    await sayTexts(['x'])(response, request);
  });
  const configOf = (limits: ConfigInput['limits'], declared: number): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: 'an-admin-token-for-tests' },
    storage: { url: 'sqlite::memory:' },
    limits: { queueWait: '10m', ...limits },
    keys: { declared: { key: declaredSecret, concurrency: declared } },
    upstreams: { local: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'local', model: 'm' }], free: true } },
  });
  const gateway = createGateway(configOf({ concurrency: 1 }, 1), {
    logLevel: 'silent',
    clock: createFakeClock(),
  });
  const { url } = await gateway.listen();
  onTestFinished(async () => {
    ended.resolve();
    await gateway.close();
    await upstream.close();
  });
  const ask = (key: string): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }] }),
    });
  return { gateway, upstream, configOf, ask, end: () => ended.resolve() };
}

type SetUp = Awaited<ReturnType<typeof setUp>>;

/** The ways to give a key two slots instead of one. */
const raises: Readonly<Record<string, (set: SetUp, keyId: string) => Promise<unknown>>> = {
  'an operator changes the key': ({ gateway }, keyId) => gateway.keys.update(keyId, { concurrency: 2 }),
  'a reloaded config has another default': async ({ gateway, configOf }) =>
    gateway.reload(configOf({ concurrency: 2 }, 1)),
  'a reloaded config declares the key otherwise': async ({ gateway, configOf }) =>
    gateway.reload(configOf({ concurrency: 1 }, 2)),
};

test.each(Object.entries(raises))(
  'a request that waits for a slot gets it at once when %s',
  async (how, raise) => {
    const set = await setUp();
    const { key: secret, id } = await set.gateway.keys.create({ name: 'x' });
    const key = how.includes('declares') ? declaredSecret : secret;
    const answers = [set.ask(key), set.ask(key)];
    await eventually('one runs, and one waits', async () => {
      const { data } = await set.gateway.inFlight();
      return data.length === 2 && set.upstream.running === 1;
    });
    await raise(set, id);
    await eventually('both run', () => set.upstream.running === 2);
    set.end();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  },
);
