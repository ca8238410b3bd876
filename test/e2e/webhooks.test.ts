import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ConfigInput } from '../../src/index.ts';
import { maxAttempts } from '../../src/domain/webhook-retries.ts';
import { askAdmin } from '../support/admin-client.ts';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { sayTexts } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import type { ReceivedEvent, WebhookReceiver } from '../support/webhook-receiver.ts';
import {
  advanceBy,
  advanceUntil,
  lowBalanceLimits,
  makePayer,
  price,
  question,
  startWebhookScene,
} from '../support/webhook-scene.ts';
import type { WebhookScene } from '../support/webhook-scene.ts';

const hourMs = 3_600_000;
const dayMs = 86_400_000;

let scene: WebhookScene;
let clock: FakeClock;
let upstream: ScriptedUpstream;
let receiver: WebhookReceiver;
beforeEach(async () => {
  scene = await startWebhookScene();
  ({ clock, upstream, receiver } = scene);
});
afterEach(() => scene.close());

const passUntil = (what: string, condition: () => boolean) => advanceUntil(clock, what, condition);
const pass = (durationMs: number) => advanceBy(clock, durationMs);

async function open(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    price,
    clock,
    webhooks: { ops: { url: receiver.url, secret: receiver.secret } },
    ...options,
    limits: { ...lowBalanceLimits, ...options.limits },
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The real time that an attempt and its write get between two strides, in milliseconds. */
const strideWaitMs = 5;

/** Lets a time pass in which nothing is to be sent: in long strides, behind each of which a request would be seen. */
async function passQuietly(durationMs: number): Promise<void> {
  // What was sent just now may still end: its deadline is of the same clock.
  await pass(60_000);
  for (let passedMs = 0; passedMs < durationMs; passedMs += 60_000) {
    clock.advance(60_000);
    await wait(strideWaitMs);
  }
}

/** Lets long fake times pass in strides, between which attempts end: their deadlines are of the same clock. */
async function strideUntil(what: string, condition: () => boolean, strideMs = hourMs / 2): Promise<void> {
  await eventually(what, async () => {
    clock.advance(strideMs);
    await wait(strideWaitMs);
    return condition();
  });
}

/** Waits until the age of the oldest event that waits, as the metrics show it, is as expected. */
async function agedUntil({ adminUrl }: TestGateway, isAsExpected: (seconds: number) => boolean) {
  await eventually('the age is as expected', async () => {
    clock.advance(1_000);
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
    return isAsExpected(Number(/textgate_outbox_oldest_age_seconds (\d+)/.exec(metrics)?.[1]));
  });
}

/** Waits until a number of events are delivered, and none waits. */
async function untilDelivered(gateway: TestGateway, number: number): Promise<void> {
  await eventually('all were delivered', async () => {
    await pass(60_000);
    const { body: listed } = await askAdmin(gateway, 'GET', '/webhooks/deliveries?limit=100');
    const states: readonly string[] = listed.data.map(({ state }: { state: string }) => state);
    return states.length === number && states.every((state) => state === 'delivered');
  });
}

/** Another receiver, which is closed with the test. */
async function startOther(): Promise<WebhookReceiver> {
  const other = await startReceiver();
  onTestFinished(() => other.close());
  return other;
}

/** A gateway and a key of it, of which an event is about to be sent to a webhook that accepts none. */
async function openRefused() {
  const gateway = await open();
  const payer = await makePayer(gateway, 'a');
  receiver.play(500);
  await payer.cross();
  return { gateway, payer };
}

const keyOf = ({ data }: ReceivedEvent): string => (data['key'] as { readonly id: string }).id;

/** The crossings that were handled of a key, in the order of their handling. */
const handledOf = (keyId: string) => receiver.handled.filter((event) => keyOf(event) === keyId);

describe('events of a low balance', () => {
  test('come once for each crossing, signed, with exact amounts, and show neither prompts nor secrets', async () => {
    const gateway = await open();
    const payer = await makePayer(gateway, 'bob "the payer"');
    await payer.cross();
    await passUntil('the event came', () => receiver.handled.length === 1);
    const [{ headers }] = receiver.seen as [WebhookReceiver['seen'][number]];
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': expect.stringMatching(/^evt_[0-9a-f]{32}$/),
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
    });
    expect(receiver.handled[0]).toEqual({
      id: headers['webhook-id'],
      type: 'balance.low',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
      data: { key: { id: payer.id, name: 'bob "the payer"' }, balance: '5.00', low_balance: '10.00' },
    });
    await pass(60_000);
    expect(receiver.requests).toBe(1);
    await payer.cross();
    await passUntil('the next one came', () => receiver.handled.length === 2);
    expect(JSON.stringify(receiver.seen)).not.toMatch(/a question of a key|sk-tg-|sk-upstream/);
    await agedUntil(gateway, (seconds) => seconds === 0);
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).toContain('textgate_webhook_deliveries_total{webhook="ops",result="delivered"} 2');
  });

  test('reach a receiver that was down for an hour, each once by its id, and those of a key in their order', async () => {
    const gateway = await open();
    const payers = await Promise.all(['a', 'b', 'c'].map((name) => makePayer(gateway, name)));
    await receiver.goDown();
    for (let round = 0; round < 4; round++) {
      await Promise.all(payers.map((payer) => payer.cross()));
      await pass(hourMs / 4);
    }
    await agedUntil(gateway, (seconds) => seconds > 3_000);
    await receiver.comeBack();
    await passUntil('all events came', () => receiver.handled.length === 12);
    await passQuietly(hourMs);
    for (const { id } of payers) {
      const times = handledOf(id).map((event) => event.created_at);
      expect(times).toHaveLength(4);
      expect(times).toEqual(times.toSorted());
    }
    expect(receiver.repeated).toBe(0);
  });

  test('come again to a receiver that fails in any way, which handles each once by its id', async () => {
    const gateway = await open();
    const payers = await Promise.all(['a', 'b'].map((name) => makePayer(gateway, name)));
    const conducts = ['slow', 500, 'cut', 'lose', 302, 410, 'lose', 'accept'] as const;
    let requests = 0;
    // Not for as long as events wait: the waits of one that fails by chance each time grow to hours.
    receiver.play(
      () => (requests < 3 * conducts.length ? conducts[requests++ % conducts.length] : 'accept') ?? 'accept',
    );
    for (let round = 0; round < 4; round++) await Promise.all(payers.map((payer) => payer.cross()));
    await passUntil('all were handled', () => receiver.handled.length === 8);
    receiver.play('accept');
    await untilDelivered(gateway, 8);
    expect(receiver.handled).toHaveLength(8);
    expect(receiver.repeated).toBeGreaterThan(0);
    for (const { id } of payers) {
      const deliveries = handledOf(id).map((event) => event.created_at);
      expect(deliveries).toEqual(deliveries.toSorted());
    }
  });

  test('are given up after three days, listed, logged, counted, and delivered when they are sent again', async () => {
    let log = '';
    const gateway = await open({ logDestination: { write: (line) => void (log += line) } });
    const payer = await makePayer(gateway, 'a');
    receiver.play(503);
    await payer.cross();
    await strideUntil('it was given up', () => log.includes('event given up'));
    expect(clock.monotonicMs()).toBeGreaterThan(2.5 * dayMs);
    const requests = receiver.requests;
    await passQuietly(2 * hourMs);
    expect(receiver.requests).toBe(requests);
    const { body: dead } = await askAdmin(gateway, 'GET', '/webhooks/deliveries?state=dead');
    expect(dead.data).toMatchObject([{ type: 'balance.low', webhook: 'ops', attempts: maxAttempts }]);
    expect(await (await fetch(`${gateway.adminUrl}/metrics`)).text()).toContain(
      'textgate_webhook_deliveries_total{webhook="ops",result="dead"} 1',
    );
    receiver.play('accept');
    const id = dead.data[0].event_id;
    const again = await askAdmin(gateway, 'POST', `/webhooks/events/${id}/resend`, {});
    expect([again.status, again.body]).toEqual([200, { id, webhooks: ['ops'] }]);
    await passUntil('it came', () => receiver.handled.length === 1);
    expect(receiver.handled[0]?.id).toBe(id);
  });
});

describe('events that the gateway watches for', () => {
  test('tell of an expiry a week and a day before, once each, and not a second time after the records of it are gone', async () => {
    const gateway = await open({ events: { keyExpiring: ['1d', '20d'] } });
    const expiresAt = clock.now() + 21 * dayMs;
    const { key } = await gateway.gateway.createKey('guest', { expiresAt });
    await gateway.gateway.createKey('short', { expiresAt: clock.now() + hourMs });
    await passUntil('the short one was told', () => receiver.handled.length === 1);
    await strideUntil('the first notice came', () => receiver.handled.length === 2, dayMs / 4);
    await strideUntil('the second notice came', () => receiver.handled.length === 3, dayMs / 4);
    await strideUntil('the key has expired', () => clock.now() > expiresAt + dayMs, dayMs / 4);
    const [short, ...own] = receiver.handled.map(({ type, data }) => ({ type, ...data }));
    expect(short).toMatchObject({ type: 'key.expiring', within: '1d' });
    expect(own).toEqual(
      ['20d', '1d'].map((within) => ({
        type: 'key.expiring',
        key: { id: key.id, name: 'guest' },
        expires_at: new Date(expiresAt).toISOString(),
        within,
      })),
    );
  });

  test('tell of an upstream whose circuit stays open and closed, and not of one that opens and closes by turns', async () => {
    const gateway = await open();
    const ask = () => gateway.post('/v1/chat/completions', question).then((response) => response.text());
    const fail = async () => {
      upstream.play((response) => void response.writeHead(500).end());
      for (let request = 0; request < 5; request++) await ask();
    };
    const recover = async () => {
      upstream.play(sayTexts(['a']));
      await pass(6_000);
      await ask();
    };
    for (let turn = 0; turn < 3; turn++) {
      await fail();
      await pass(15_000);
      await recover();
    }
    await pass(60_000);
    expect(receiver.requests).toBe(0);
    await fail();
    await passUntil('it was down', () => receiver.handled.length === 1);
    await recover();
    await fail();
    await pass(60_000);
    expect(receiver.requests).toBe(1);
    await recover();
    await passUntil('it was up', () => receiver.handled.length === 2);
    expect(receiver.handled.map(({ type, data }) => ({ type, ...data }))).toEqual([
      { type: 'upstream.down', upstream: 'local' },
      { type: 'upstream.up', upstream: 'local', down_since: receiver.handled[0]?.created_at },
    ]);
  });

  test('tell of a ledger that does not balance, once a day', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const gateway = await open({ storage: file });
    const { id } = await makePayer(gateway, 'a');
    const database = new DatabaseSync(file, { timeout: 5_000 });
    database.function('now_ms', () => 0);
    database.prepare('UPDATE accounts SET spent = spent + 5 WHERE key_id = ?').run(id);
    database.close();
    await passUntil('the audit found it', () => receiver.handled.length === 1);
    await passQuietly(hourMs);
    expect(receiver.handled.map(({ type, data }) => ({ type, ...data }))).toEqual([
      {
        type: 'ledger.imbalance',
        imbalance: expect.stringMatching(/^0\.00000000\d$/),
        faults: expect.any(Number),
      },
    ]);
    await strideUntil('it is told again the next day', () => receiver.handled.length === 2);
  });
});

/** The config of a gateway with other webhooks. */
const config = (webhooks: ConfigInput['webhooks']): ConfigInput => ({
  server: { port: 0 },
  admin: { port: 0, token: 'an-admin-token-for-tests' },
  storage: { url: 'sqlite::memory:' },
  limits: { requestsPerMinute: 1_000_000, lowBalance: '10' },
  upstreams: { local: { url: upstream.url, apiKey: 'sk-upstream-secret' } },
  models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], price } },
  webhooks,
});

describe('webhooks', () => {
  test('get the types that they want, each in its own time', async () => {
    const other = await startOther();
    const gateway = await open({
      webhooks: {
        ops: { url: receiver.url, secret: receiver.secret, events: ['key.expiring'] },
        billing: { url: other.url, secret: other.secret, events: ['balance.low'] },
      },
    });
    receiver.play(500);
    await (await makePayer(gateway, 'a')).cross();
    await gateway.gateway.createKey('guest', { expiresAt: clock.now() + hourMs });
    await passUntil('both were sent', () => other.handled.length === 1 && receiver.requests > 1);
    expect(other.handled.map(({ type }) => type)).toEqual(['balance.low']);
    const { body: listed } = await askAdmin(gateway, 'GET', '/webhooks');
    expect(listed).toEqual({
      object: 'list',
      next: null,
      data: [
        { name: 'ops', origin: new URL(receiver.url).origin, events: ['key.expiring'], waiting: 1, dead: 0 },
        { name: 'billing', origin: new URL(other.url).origin, events: ['balance.low'], waiting: 0, dead: 0 },
      ],
    });
  });

  test('are those of the config in force: a removed one gets nothing more, and a new one what happens from then on', async () => {
    const other = await startOther();
    const { gateway, payer } = await openRefused();
    await passUntil('it was sent', () => receiver.requests > 0);
    gateway.gateway.reload(config({ next: { url: other.url, secret: other.secret } }));
    await pass(10_000);
    const { requests } = receiver;
    await payer.cross();
    await passUntil('the new one got it', () => other.handled.length === 1);
    await pass(hourMs / 4);
    expect([receiver.requests, other.handled.length]).toEqual([requests, 1]);
    gateway.gateway.reload(config({}));
    await pass(10_000);
    await payer.cross();
    await pass(hourMs / 4);
    gateway.gateway.reload(config({ ops: { url: receiver.url, secret: receiver.secret } }));
    receiver.play('accept');
    await passUntil('what had waited came', () => receiver.handled.length === 1);
    await passQuietly(hourMs);
    expect([receiver.handled.length, other.handled.length]).toEqual([1, 1]);
  });

  test('get the end of an attempt that runs while the config is replaced, and the next event by the new one', async () => {
    const other = 'another secret of the webhook';
    plant(other);
    const gateway = await open();
    const payer = await makePayer(gateway, 'a');
    receiver.play('hold');
    await payer.cross();
    // In small steps: the attempt has 8 s for all of this.
    await eventually('it was sent', () => {
      clock.advance(20);
      return receiver.requests === 1;
    });
    gateway.gateway.reload(config({ ops: { url: receiver.url, secret: [other, receiver.secret] } }));
    await pass(6_000);
    receiver.letGo();
    receiver.play('accept');
    await payer.cross();
    await passUntil('the next one came', () => receiver.handled.length === 2);
    await pass(60_000);
    expect(receiver.requests).toBe(2);
    const signatures = receiver.seen.map(({ headers }) => String(headers['webhook-signature']).split(' '));
    expect(signatures.map(({ length }) => length)).toEqual([1, 2]);
  });

  test('that were removed have no age, and no events are sent to them again', async () => {
    const other = await startOther();
    const { gateway } = await openRefused();
    await agedUntil(gateway, (seconds) => seconds > 30);
    gateway.gateway.reload(config({ next: { url: other.url, secret: other.secret } }));
    await agedUntil(gateway, (seconds) => seconds === 0);
    const { body: listed } = await askAdmin(gateway, 'GET', '/webhooks/deliveries');
    const path = `/webhooks/events/${listed.data[0].event_id}/resend`;
    for (const [given, code] of [
      [{ webhook: 'ops' }, 'webhook_not_found'],
      [{ webhook: 'next' }, 'event_not_found'],
      [{}, 'event_not_found'],
    ] as const)
      expect((await askAdmin(gateway, 'POST', path, given)).body.error.code).toBe(code);
  });

  test('are tested by an event that is kept nowhere; what is unknown is refused', async () => {
    const gateway = await open();
    const send = (name: string) => askAdmin(gateway, 'POST', `/webhooks/${name}/test`);
    expect((await send('ops')).body).toMatchObject({ delivered: true, result: 'status 204' });
    expect(receiver.handled).toMatchObject([{ type: 'webhook.test', data: { webhook: 'ops' } }]);
    receiver.play(404);
    expect((await send('ops')).body).toMatchObject({ delivered: false, result: 'status 404' });
    await receiver.goDown();
    expect((await send('ops')).body).toMatchObject({
      delivered: false,
      result: 'the connection failed (ECONNREFUSED)',
    });
    for (const [path, code] of [
      ['/webhooks/none/test', 'webhook_not_found'],
      ['/webhooks/events/evt_none/resend', 'event_not_found'],
    ] as const) {
      const refused = await askAdmin(gateway, 'POST', path, {});
      expect([refused.status, refused.body.error.code]).toEqual([404, code]);
    }
    for (const query of ['state=lost', 'before=x', 'limit=0'])
      expect((await askAdmin(gateway, 'GET', `/webhooks/deliveries?${query}`)).status).toBe(400);
    expect((await askAdmin(gateway, 'GET', '/webhooks/deliveries')).body.data).toEqual([]);
  });
});
