import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Observations } from './observations.ts';

/** Behind how many bytes of an answer its connection is cut, and how: with a FIN, or with an RST. */
export interface Cut {
  readonly bytes: number;
  readonly how: 'fin' | 'rst';
}

/** A proxy on loopback that passes on a number of bytes of the answer to a request, and then cuts its connection. */
export interface CuttingProxy {
  readonly port: number;
  /** How often each question was sent, and how many of its connections were cut. */
  readonly seen: ReadonlyMap<number, { readonly tries: number; readonly cuts: number }>;
  /** Cuts the next answers to a question: each request with its number takes one of the cuts. */
  cutAnswers(question: number, cuts: readonly Cut[]): void;
  close(): Promise<void>;
}

/** The header in which a request has its number, and that of its client; the server does not read it. */
export const questionHeader = 'x-question';
const questionPattern = new RegExp(`${questionHeader}: (\\d+)-(\\d+)`, 'i');

/** Where a connection leads to: a port, and the number of the process that listens there. */
export interface CuttingTarget {
  readonly port: number;
  readonly process: number;
}

/** `target` says where the next connection leads to. */
export async function startCuttingProxy(
  target: () => CuttingTarget,
  observations: Observations,
): Promise<CuttingProxy> {
  const planned = new Map<number, Cut[]>();
  const seen = new Map<number, { tries: number; cuts: number }>();
  const clients = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const { port, process } = target();
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
    let asked = { tries: 0, cuts: 0 };
    let noteLeft = (): void => {};
    let cut: Cut | null = null;
    clients.add(client);
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.on('data', (bytes: Buffer) => {
      const found = questionPattern.exec(bytes.toString('latin1'));
      if (found !== null) {
        const [question = 0, asker = 0] = found.slice(1).map(Number);
        const number = observations.nextNumber();
        observations.note(question, { what: 'sent', asked: number, process, asker });
        noteLeft = () => {
          observations.note(question, { what: 'left', asked: number });
          noteLeft = () => {};
        };
        asked = seen.get(question) ?? { tries: 0, cuts: 0 };
        seen.set(question, asked);
        asked.tries++;
        cut = planned.get(question)?.shift() ?? null;
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => {
      if (cut === null || bytes.length < cut.bytes) {
        if (cut !== null) cut = { ...cut, bytes: cut.bytes - bytes.length };
        return void client.write(bytes);
      }
      asked.cuts++;
      noteLeft();
      const { how } = cut;
      client.write(bytes.subarray(0, cut.bytes), () => {
        if (how === 'rst') client.resetAndDestroy();
        else client.destroy();
      });
      upstream.destroy();
    });
    client.on('close', () => {
      clients.delete(client);
      noteLeft();
      upstream.destroy();
    });
    upstream.on('close', () => client.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    cutAnswers: (question, cuts) => void planned.set(question, [...cuts]),
    async close() {
      for (const client of clients) client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
