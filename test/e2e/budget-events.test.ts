import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ConfigInput } from '../../src/index.ts';
import { plant } from '../support/canaries.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { blocksOf } from '../support/page-blocks.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';
import type { ReceivedEvent, WebhookReceiver } from '../support/webhook-receiver.ts';
import { advanceBy, advanceUntil, price, spend, startWebhookScene } from '../support/webhook-scene.ts';
import type { WebhookScene } from '../support/webhook-scene.ts';

const dayMs = 86_400_000;

let scene: WebhookScene;
let clock: FakeClock;
let receiver: WebhookReceiver;
beforeEach(async () => {
  scene = await startWebhookScene();
  ({ clock, receiver } = scene);
});
afterEach(() => scene.close());

const passUntil = (what: string, condition: () => boolean) => advanceUntil(clock, what, condition);

/** Lets a minute pass, in which an event that is on its way comes. */
const passMinute = () => advanceBy(clock, 60_000);

async function open(
  groups: ConfigInput['groups'] = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const gateway = await startGateway({
    upstreamUrl: scene.upstream.url,
    price,
    clock,
    groups,
    limits: { requestsPerMinute: 1_000_000 },
    webhooks: { ops: { url: receiver.url, secret: receiver.secret } },
    ...options,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** A key, and a function that spends 7 USD with it. */
async function makeSpender(gateway: TestGateway, name: string, settings: object) {
  const { id, key } = await gateway.gateway.keys.create({ name, ...settings });
  plant(key);
  return {
    id,
    spend: () => spend(gateway, key),
  };
}

/** The names of all fields of an object, with those of the objects in it. */
function fieldsOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).map(([name, inner]) => [name, fieldsOf(inner)])
    : null;
}

/** The event as the page shows it. */
function documented(): ReceivedEvent {
  const events = blocksOf('docs/operators/webhooks.md', 'json').map(
    ({ text }) => JSON.parse(text) as ReceivedEvent,
  );
  const found = events.find(({ type }) => type === 'budget.level');
  if (found === undefined) throw new Error('the page shows no event of a budget');
  return found;
}

const startOfDay = () => new Date(Math.floor(clock.now() / dayMs) * dayMs).toISOString();
const endOfDay = () => new Date((Math.floor(clock.now() / dayMs) + 1) * dayMs).toISOString();

describe('the event of a budget', () => {
  test('of a key comes once for each level, the highest of several, and again in the next period', async () => {
    const gateway = await open();
    const budget = { amount: '14', per: 'day', warnAt: ['0.2', '0.5', '1'] } as const;
    const bob = await makeSpender(gateway, 'bob', { budget });
    const day = { per: 'day', time_zone: 'UTC', period_start: startOfDay(), refills_at: endOfDay() };
    await bob.spend();
    await passUntil('the first one came', () => receiver.handled.length === 1);
    await bob.spend();
    await passUntil('the second one came', () => receiver.handled.length === 2);
    const key = { id: bob.id, name: 'bob' };
    expect(receiver.handled).toEqual(
      [
        { key, level: '0.5', amount: '14.00', spent: '7.00', ...day },
        { key, level: '1', amount: '14.00', spent: '14.00', ...day },
      ].map((data) => ({
        id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
        type: 'budget.level',
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
        data,
      })),
    );
    await gateway.gateway.keys.update(bob.id, { budget: { amount: '100' } });
    await bob.spend();
    await passMinute();
    expect(receiver.requests).toBe(2);

    clock.advance(dayMs);
    await gateway.gateway.keys.update(bob.id, { budget: { amount: '14' } });
    await bob.spend();
    await passUntil('that of the next day came', () => receiver.handled.length === 3);
    expect(receiver.handled[2]?.data).toMatchObject({
      level: '0.5',
      spent: '7.00',
      period_start: startOfDay(),
    });
    expect(JSON.stringify(receiver.seen)).not.toMatch(/a question of a key|sk-tg-|sk-upstream/);
  });

  test('of a group has the name of the group, and is as the page shows it', async () => {
    const budget = { amount: '20', per: 'day' as const, warnAt: ['0.6'] };
    const gateway = await open({ research: { budget } });
    const settings = { group: 'research', budget: { amount: '14', per: 'day', warnAt: ['1'] } };
    const [ann, bob] = [
      await makeSpender(gateway, 'ann', settings),
      await makeSpender(gateway, 'bob', { group: 'research' }),
    ];
    await ann.spend();
    await bob.spend();
    await passUntil('that of the group came', () => receiver.handled.length === 1);
    expect(receiver.handled[0]?.data).toEqual({
      group: 'research',
      level: '0.6',
      amount: '20.00',
      spent: '14.00',
      per: 'day',
      time_zone: 'UTC',
      period_start: startOfDay(),
      refills_at: endOfDay(),
    });
    expect(fieldsOf(receiver.handled[0])).toEqual(fieldsOf(documented()));
    await ann.spend();
    await passUntil('that of a key came', () => receiver.handled.length === 2);
    expect(receiver.handled[1]?.data).toMatchObject({ key: { id: ann.id, name: 'ann' }, level: '1' });
    await passMinute();
    expect(receiver.requests).toBe(2);
  });

  test('comes with the next charge for a level that is added below what is spent, and not for one below the last', async () => {
    const gateway = await open();
    const bob = await makeSpender(gateway, 'bob', {
      budget: { amount: '70', per: 'month', warnAt: ['0.2'] },
    });
    const warnAt = (...parts: string[]) => gateway.gateway.keys.update(bob.id, { budget: { warnAt: parts } });
    await bob.spend();
    await bob.spend();
    await passUntil('the first one came', () => receiver.handled.length === 1);
    await warnAt('0.1');
    await bob.spend();
    await warnAt('0.25');
    await passMinute();
    expect(receiver.requests).toBe(1);
    await bob.spend();
    await passUntil('that of the added level came', () => receiver.handled.length === 2);
    expect(receiver.handled.map(({ data }) => [data['level'], data['spent']])).toEqual([
      ['0.2', '14.00'],
      ['0.25', '28.00'],
    ]);
  });

  test('has the amount with a raise that is in force', async () => {
    const gateway = await open();
    const raise = { amount: '6', until: '2100-01-01' };
    const budget = { amount: '8', per: 'month', warnAt: ['0.5'], raise };
    const bob = await makeSpender(gateway, 'bob', { budget });
    await bob.spend();
    await passUntil('it came', () => receiver.handled.length === 1);
    expect(receiver.handled[0]?.data).toMatchObject({ level: '0.5', amount: '14.00', spent: '7.00' });
  });
});
