import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { listDeliveries, listWebhooks, resendEvent, testWebhook } from '../../src/cli/webhooks.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/test-gateway.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

test('webhooks are listed and tested, their deliveries are listed, and an event is delivered again', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const gateway = await startGateway({
    price: { input: '1000000', output: '1000000' },
    limits: { lowBalance: '10' },
    webhooks: { ops: { url: receiver.url, secret: receiver.secret, events: ['balance.low'] } },
  });
  onTestFinished(() => gateway.close());
  vi.stubEnv('TEXTGATE_ADMIN_URL', gateway.adminUrl);
  vi.stubEnv('TEXTGATE_ADMIN_TOKEN', gateway.adminToken);
  const columns = (text: string) => text.split('\n').map((line) => line.trim().split(/\s{2,}/));

  expect(await listDeliveries({})).toBe('no deliveries');
  const { secret } = await gateway.gateway.createKey('bob', { balanceNanos: 12e9 });
  const question = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  await gateway.post('/v1/chat/completions', question, { headers: { authorization: `Bearer ${secret}` } });
  await eventually(
    'it was delivered',
    async () => (await listDeliveries({ state: 'delivered' })) !== 'no deliveries',
  );
  const [, row = []] = columns(await listDeliveries({ webhook: 'ops', limit: 5 }));
  const id = String(receiver.handled[0]?.id);
  expect(row).toEqual([id, 'balance.low', 'ops', 'delivered', 'status 204']);

  expect(await resendEvent(id, {})).toBe(`${id} is sent again to ops`);
  await eventually('it came again', () => receiver.repeated === 1);
  await expect(resendEvent('evt_none', {})).rejects.toThrow('No delivery of an event with this id is kept');

  expect(columns(await listWebhooks({}))).toEqual([
    ['NAME', 'RECEIVER', 'WAITING', 'DEAD', 'EVENTS'],
    ['ops', new URL(receiver.url).origin, '0', '0', 'balance.low'],
  ]);
  expect(await testWebhook('ops', {})).toMatch(/^ops has accepted evt_[0-9a-f]{32}: status 204$/);
  expect(process.exitCode).toBeUndefined();
  receiver.play(500);
  expect(await testWebhook('ops', {})).toMatch(/^ops has not accepted evt_[0-9a-f]{32}: status 500$/);
  expect(process.exitCode).toBe(1);
  await expect(testWebhook('opps', {})).rejects.toThrow('No webhook has this name');
});
