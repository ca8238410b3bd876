import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** How a connection is cut: with a FIN, or with an RST. */
type Cut = 'fin' | 'rst';

/** A proxy on loopback that passes on a number of bytes of the answer to a request, and then cuts its connection. */
export interface CuttingProxy {
  readonly port: number;
  /** How many connections it has cut. */
  readonly cuts: number;
  /** Cuts the next answer to the request with this number behind some bytes. */
  cutNext(question: number, bytes: number, how: Cut): void;
  close(): Promise<void>;
}

/** The header in which a request has its number; the server does not read it. */
export const questionHeader = 'x-question';
const questionPattern = new RegExp(`${questionHeader}: (\\d+)`, 'i');

/** `target` says which port of a server the next connection leads to. */
export async function startCuttingProxy(target: () => number): Promise<CuttingProxy> {
  const planned = new Map<number, { readonly bytes: number; readonly how: Cut }>();
  const clients = new Set<Socket>();
  let cuts = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port: target(), host: '127.0.0.1', noDelay: true });
    let cut: { readonly how: Cut; bytes: number } | null = null;
    clients.add(client);
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.on('data', (bytes: Buffer) => {
      const question = questionPattern.exec(bytes.toString('latin1'))?.[1];
      if (question !== undefined) {
        const plan = planned.get(Number(question));
        planned.delete(Number(question));
        cut = plan === undefined ? null : { ...plan };
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => {
      if (cut === null || bytes.length < cut.bytes) {
        if (cut !== null) cut.bytes -= bytes.length;
        return void client.write(bytes);
      }
      cuts++;
      const { how } = cut;
      client.write(bytes.subarray(0, cut.bytes), () => {
        if (how === 'rst') client.resetAndDestroy();
        else client.destroy();
      });
      upstream.destroy();
    });
    client.on('close', () => {
      clients.delete(client);
      upstream.destroy();
    });
    upstream.on('close', () => client.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    cutNext: (question, bytes, how) => void planned.set(question, { bytes, how }),
    async close() {
      for (const client of clients) client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
