import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';

/** Starts a fake admin listener; returns the environment variables that point the command at it. */
export async function startAdmin(
  answer: (response: ServerResponse) => void,
): Promise<Record<string, string>> {
  const server: Server = createServer((_request, response) => answer(response));
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await eventually('the listener is open', () => server.listening);
  const { port } = server.address() as AddressInfo;
  return { TEXTGATE_ADMIN_URL: `http://127.0.0.1:${port}`, TEXTGATE_ADMIN_TOKEN: 'an-admin-token-for-tests' };
}
