import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ConfigInput } from '../../src/index.ts';
import { askAdmin } from '../support/admin-client.ts';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';
import { lowBalanceLimits, makePayer, price, spend, startWebhookScene } from '../support/webhook-scene.ts';
import type { WebhookScene } from '../support/webhook-scene.ts';

let scene: WebhookScene;
let receiver: WebhookReceiver;
beforeEach(async () => {
  scene = await startWebhookScene();
  ({ receiver } = scene);
});
afterEach(() => scene.close());

describe.skipIf(postgresAbsence !== null)('two nodes over one database', () => {
  /** A database, and a function that starts a gateway over it. */
  async function openNodes() {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const ops = { url: receiver.url, secret: receiver.secret };
    const start = (webhooks: ConfigInput['webhooks'] = { ops }) =>
      startGateway({
        upstreamUrl: scene.upstream.url,
        price,
        databaseUrl: database.url,
        spool: makeTemporaryFolder(),
        webhooks,
        limits: lowBalanceLimits,
      });
    return { database, start };
  }

  test('deliver each event once, also when the one that delivers ends', async () => {
    const { start } = await openNodes();
    const [one, two] = [await start(), await start()];
    const payers = await Promise.all([one, two, one, two].map((node, at) => makePayer(node, `payer ${at}`)));
    for (let round = 0; round < 3; round++) await Promise.all(payers.map((payer) => payer.cross()));
    await eventually('all came, and the database knows', async () => {
      const { body: listed } = await askAdmin(two, 'GET', '/webhooks/deliveries?state=delivered');
      return listed.data.length === 12;
    });
    await one.close();
    for (const payer of [payers[1], payers[3]]) await payer?.cross();
    await eventually('those of the other node came', () => receiver.handled.length === 14);
    await two.close();
    expect(receiver.requests).toBe(14);
  });

  test('deliver although the one that started first has a config without webhooks', async () => {
    const { database, start } = await openNodes();
    const one = await start({});
    onTestFinished(() => one.close());
    await eventually('the first one has seen to the deliveries', async () => {
      const [found] = await onServer('SELECT max(1) AS found FROM duties', database.url);
      return found?.['found'] === 1;
    });
    const two = await start();
    onTestFinished(() => two.close());
    await (await makePayer(two, 'a')).cross();
    await eventually('the event came', () => receiver.handled.length === 1);
  });
});

describe.skipIf(postgresAbsence !== null)('over PostgreSQL the event of a budget', () => {
  test('is the same for a key and for a group', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const midnight = /^\d{4}-\d\d-\d\dT00:00:00\.000Z$/;
    const settings = { amount: '14', per: 'day' as const, warnAt: ['0.5'] };
    const gateway = await startGateway({
      upstreamUrl: scene.upstream.url,
      price,
      groups: { research: { budget: settings } },
      limits: { requestsPerMinute: 1_000_000 },
      webhooks: { ops: { url: receiver.url, secret: receiver.secret } },
      databaseUrl: database.url,
      spool: makeTemporaryFolder(),
    });
    const name = 'bob "the payer" \\ ☃';
    const bob = await gateway.gateway.keys.create({ name, group: 'research', budget: settings });
    plant(bob.key);
    await spend(gateway, bob.key);
    await eventually('both came', () => receiver.handled.length === 2, 30_000);
    const bounds = {
      period_start: expect.stringMatching(midnight),
      refills_at: expect.stringMatching(midnight),
    };
    const reached = { level: '0.5', amount: '14.00', spent: '7.00', per: 'day', time_zone: 'UTC', ...bounds };
    expect(receiver.handled.map(({ data }) => data)).toEqual(
      expect.arrayContaining([
        { key: { id: bob.id, name }, ...reached },
        { group: 'research', ...reached },
      ]),
    );
    await gateway.close();
  });
});
