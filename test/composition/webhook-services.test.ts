import type { LookupFunction } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { composeWebhooks } from '../../src/composition/webhook-services.ts';
import { checkConfig } from '../../src/config/load.ts';

vi.mock('node:dns', async (original) => {
  const lookup: LookupFunction = (name, _options, callback) =>
    callback(null, [{ address: name === 'six.example' ? 'fe80::1' : '169.254.169.254', family: 4 }]);
  return { ...(await original<object>()), lookup };
});

test('events go to no name that resolves to a link-local address, whatever upstreams may do', async () => {
  const config = checkConfig(
    {
      upstreams: { local: { url: 'http://127.0.0.1:9/v1', allowLinkLocal: true } },
      models: { from: 'local' },
      webhooks: Object.fromEntries(
        ['four', 'six'].map((name) => [
          name,
          { url: `http://${name}.example/`, secret: 'sixteen characters' },
        ]),
      ),
    },
    'the config',
  );
  const files = {
    keyOf: () => null,
    keyRefused() {},
    printedBy: () => null,
    certificatesOf: () => ({}),
    certificatesOfWebhook: () => ({}),
  };
  const receivers = composeWebhooks(config, { files, findProxy: () => null }, systemClock);
  onTestFinished(() => receivers.close());
  for (const webhook of receivers.webhooks)
    expect(await webhook.send('evt_1', '{}', new AbortController().signal)).toEqual({
      kind: 'failed',
      reason: 'the connection failed (LINK_LOCAL_REFUSED)',
      retryAfterMs: null,
    });
});
