import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { printStatus } from '../../src/cli/top/print-status.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

afterEach(() => void vi.unstubAllEnvs());

test.each([
  [1, 'and 1 more request'],
  [2, 'and 2 more requests'],
])('a status with %i requests that it does not list says so', async (running, said) => {
  const gateway = await startGateway();
  const status = await gateway.gateway.status();
  await gateway.close();
  const server = await startUpstream();
  onTestFinished(() => server.close());
  const inFlight = { ...status.in_flight, running, has_more: true };
  server.play((response) => sendJson(response, 200, JSON.stringify({ ...status, in_flight: inFlight })));
  vi.stubEnv('TEXTGATE_ADMIN_URL', new URL(server.url).origin);
  vi.stubEnv('TEXTGATE_ADMIN_TOKEN', 'any');
  expect((await printStatus({})).split('\n').at(-1)).toBe(said);
});
