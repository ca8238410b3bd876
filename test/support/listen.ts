import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo, Server as SocketServer } from 'node:net';
import { atEnd } from './at-end.ts';

/** Lets a server listen on a free loopback port, which is returned, until the end of the test. */
export async function listen(server: Server | SocketServer, host = '127.0.0.1', port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  atEnd(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Serves what a listener of requests, such as an app, answers; resolves with the address. */
export async function serveApp(app: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(app))}`;
}
