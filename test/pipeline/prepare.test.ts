import { expect, test } from 'vitest';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import { createModelList } from '../../src/models/model-list.ts';
import type { ClientConnection } from '../../src/pipeline/client-connection.ts';
import type { Exchange } from '../../src/pipeline/exchange.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { prepare } from '../../src/pipeline/prepare.ts';
import { clientFacts } from '../support/client-facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { modelPrice } from '../support/model-price.ts';
import { localRoute, usualSettings } from '../support/model-source.ts';

const limits = { concurrency: 1, requestsPerMinute: 1, queueWaitMs: 0 };
const good = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

/** What is other than usual of a request, its ports and its client. */
interface Scene {
  readonly body?: object;
  readonly ports?: object;
  readonly client?: Partial<ClientConnection>;
}

/** Prepares a request; also says whether its body was read. */
async function prepareWith({ body = good, ports = {}, client = {} }: Scene) {
  const model = {
    ...usualSettings,
    id: 'small',
    routes: [localRoute],
    price: modelPrice({ input: 1, output: 1 }),
    holdTokens: 10,
  };
  const exchange = {
    claim: null,
    requestId: 'req_1',
    protocol: 'chat',
    arrivedMs: 0,
    body: null,
    client: { ...clientFacts('1', 'secret', body), ...client },
  } as unknown as Exchange;
  const usual = {
    clock: createFakeClock(),
    limiter: { beginsRecords: true, knownRefusal: () => null },
    models: createModelList([model]),
    records: { takesWrites: true },
    upstreamLimiters: { limits: () => false },
    balanceMode: 'strict',
    defaultCompatibility: {},
    random: () => 0,
  };
  const key = { id: 'key', budget: null, models: null, compatibility: {} } as unknown as ApiKey;
  const all = { ...usual, ...ports } as unknown as Ports;
  const prepared = await prepare(key, { tag: null, group: null, limits }, exchange, all);
  return { prepared, isRead: exchange.body !== null };
}

test('a request whose body has arrived is read, and its record can be begun with its slot', async () => {
  const { prepared, isRead } = await prepareWith({});
  expect(isRead).toBe(true);
  expect(prepared).toMatchObject({
    work: { kind: 'text', model: { id: 'small' } },
    opening: { record: { requestId: 'req_1', keyId: 'key', model: 'small', mode: 'sync' } },
  });
});

const unread: readonly (readonly [string, Scene])[] = [
  ['a limiter that begins no records', { ports: { limiter: { knownRefusal: () => null } } }],
  ['a database that takes no writes', { ports: { records: { takesWrites: false } } }],
  ['a body on its way', { client: { arrivedBytes: 0 } }],
  ['a long body', { client: { arrivedBytes: 65_537 } }],
  [
    'a key that is known to be refused',
    { ports: { limiter: { beginsRecords: true, knownRefusal: () => ({ verdict: 'rate' }) } } },
  ],
];

test.each(unread)('nothing is read before it is admitted: %s', async (_why, scene) => {
  expect(await prepareWith(scene)).toEqual({ prepared: null, isRead: false });
});

test('a list of models is not waited for without a slot', async () => {
  const models = { knows: () => false, find: () => expect.unreachable('asked'), list: () => [] };
  expect(await prepareWith({ ports: { models } })).toEqual({ prepared: null, isRead: true });
});

test('a request with a fault is left to be refused behind its limits', async () => {
  expect((await prepareWith({ body: { ...good, messages: [] } })).prepared).toBe(null);
  expect((await prepareWith({ client: { maxCost: 'much' } })).prepared).toBe(null);
});

test('a request that needs a permit of an upstream is read, and its record is begun later', async () => {
  const { prepared } = await prepareWith({ ports: { upstreamLimiters: { limits: () => true } } });
  expect(prepared).toMatchObject({ work: { model: { id: 'small' } }, opening: null });
});
