import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * The ports that are tried: below those that the system gives to outgoing connections, one of which could take the port
 * before the server that it is for.
 */
const ports = { lowest: 12_000, count: 20_000 };
const maxTries = 100;

/** A port of this machine that nothing uses at the moment. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < maxTries; tried++) {
    const port = ports.lowest + Math.floor(Math.random() * ports.count);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${maxTries} ports is free`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
