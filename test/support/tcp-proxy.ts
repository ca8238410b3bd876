import { once } from 'node:events';
import { createServer, connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/**
 * What becomes of bytes: `open` passes them on, `mute` passes requests on and drops the answers, `stalled` drops all of
 * them, and neither side is closed when the other one is.
 */
type Mode = 'open' | 'mute' | 'stalled';

/** A TCP proxy in front of a server, which can do to connections what networks do. */
export interface TcpProxy {
  readonly port: number;
  /** The connections that clients have open. */
  readonly open: number;
  /** How many connections were accepted so far. */
  readonly accepted: number;
  mode: Mode;
  /** What new connections are answered instead of by the server, one for each of their messages; `null`: the server does. */
  answers: readonly Buffer[] | null;
  /** The server that new connections lead to. */
  target: ProxyTarget;
  /**
   * Asked for every piece of an answer: whether the connection is ended in its place, so that the server has done what the
   * client never learns of.
   */
  losesAnswer: () => boolean;
  /**
   * Drops all further bytes of the connections that are open, in both directions, and closes neither side: what a network
   * does that has forgotten them. New connections are as before.
   */
  forget(): void;
  /** Ends all connections with an RST. */
  reset(): void;
  /** Ends all connections with a FIN. */
  end(): void;
  /** Refuses new connections. */
  refuse(): Promise<void>;
  /** Accepts them again. */
  accept(): Promise<void>;
  close(): Promise<void>;
}

export interface ProxyTarget {
  readonly host: string;
  readonly port: number;
}

export async function startTcpProxy(target: ProxyTarget): Promise<TcpProxy> {
  const clients = new Set<Socket>();
  const forgotten = new WeakSet<Socket>();
  let accepted = 0;
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    accepted++;
    clients.add(client);
    client.on('error', () => {});
    client.on('close', () => clients.delete(client));
    const modeOf = (): Mode => (forgotten.has(client) ? 'stalled' : proxy.mode);
    client.on('end', () => modeOf() !== 'stalled' && client.end());
    const { answers } = proxy;
    if (answers !== null) {
      const left = [...answers];
      client.on('data', () => client.write(left.shift() ?? ''));
      return;
    }
    const upstream = connect({ ...proxy.target, noDelay: true });
    upstream.on('error', () => {});
    client.on('data', (bytes) => modeOf() !== 'stalled' && upstream.write(bytes));
    upstream.on('data', (bytes) => {
      if (proxy.losesAnswer()) client.resetAndDestroy();
      else if (modeOf() === 'open') client.write(bytes);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => modeOf() !== 'stalled' && client.destroy());
  });
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const proxy: TcpProxy = {
    port,
    get open() {
      return [...clients].filter(({ readableEnded }) => !readableEnded).length;
    },
    get accepted() {
      return accepted;
    },
    mode: 'open',
    answers: null,
    target,
    losesAnswer: () => false,
    forget() {
      for (const client of clients) forgotten.add(client);
    },
    reset() {
      for (const client of clients) client.resetAndDestroy();
    },
    end() {
      for (const client of clients) client.end();
    },
    refuse: () =>
      new Promise((resolve) => {
        // Its callback would wait for the connections that are open.
        server.close();
        resolve();
      }),
    accept: () => listen(port),
    async close() {
      for (const client of clients) client.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
