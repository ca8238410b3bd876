import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { followStatus } from '../../src/cli/top/follow-status.ts';
import { sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { Script } from '../support/scripted-upstream.ts';

beforeEach(() => void vi.stubEnv('TEXTGATE_ADMIN_TOKEN', 'any'));
afterEach(() => void vi.unstubAllEnvs());

/** Follows the status of a server with this script until the connection is lost; the number of statuses that came. */
async function follow(script: Script): Promise<number> {
  const server = await startUpstream();
  onTestFinished(() => server.close());
  server.play(script);
  vi.stubEnv('TEXTGATE_ADMIN_URL', new URL(server.url).origin);
  const ending = new AbortController();
  let came = 0;
  await followStatus({ onStatus: () => void came++, onLost: () => ending.abort() }, ending.signal);
  return came;
}

test.each<[string, Script]>([
  [
    'another server',
    (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
  ],
  ['a gateway that is closing', (response) => void sendStream(response, [': unchanged\n\n']).end()],
])(
  'a stream of %s that ends without a status is an error, not a reason to try again',
  async (_case, script) => {
    await expect(follow(script)).rejects.toThrow(
      'the stream ended before a status came: the gateway is closing, or TEXTGATE_ADMIN_URL is the address of another server',
    );
  },
);

test('a stream that ends after a status is tried again', async () => {
  const frames = ['event: status\ndata: {}\n\n'];
  expect(await follow((response) => void sendStream(response, frames).end())).toBe(1);
});
