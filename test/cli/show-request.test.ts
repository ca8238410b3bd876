import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { showRequest } from '../../src/cli/requests/show-request.ts';

const id = `req_${'0'.repeat(31)}1`;

afterEach(() => vi.unstubAllEnvs());

test('a request whose key is not known yet is shown without one', async () => {
  const request = {
    request_id: id,
    key_id: null,
    created_at: new Date().toISOString(),
    protocol: null,
    mode: null,
    model: null,
    upstream: null,
    waits_for: null,
    waits_at: null,
    position: null,
    expected_wait_ms: null,
    first_byte_ms: null,
    listening: null,
    joined: null,
    node: null,
  };
  const gateway = createServer(({ url = '' }, response) => {
    const isList = url.startsWith('/admin/in-flight?');
    response.writeHead(isList ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isList ? { data: [request], next: null } : { error: { message: 'none' } }));
  });
  onTestFinished(() => void gateway.close());
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
  vi.stubEnv('TEXTGATE_ADMIN_URL', `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`);
  vi.stubEnv('TEXTGATE_ADMIN_TOKEN', 'any');
  expect(await showRequest(id, {})).toMatch(/^key +not known yet$/m);
});
