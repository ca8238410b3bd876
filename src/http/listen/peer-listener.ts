import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Certificates } from '../../domain/ports/network.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { PeerAnswer, ResponseAction, WantedRequest, WantedRun } from '../../pipeline/claims/peers.ts';
import { digest } from '../../shared/digest.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { jsonType } from '../../protocol/answer-writer.ts';

/** How many connections other processes may have at a time: one for each of their clients that has joined a run of this one. */
const maxConnections = 1_024;

/** The largest question, in bytes. */
const maxQuestionBytes = 4_096;

/** The pause between two empty lines, in milliseconds: they say that this process is alive. */
const aliveMs = 5_000;

/** How long another process may read nothing, in milliseconds: what it has asked for goes on without it then. */
const maxUnreadMs = 30_000;

const wantedRequest = z.strictObject({
  kind: z.literal('request'),
  keyId: z.string(),
  requestId: z.string(),
});
const wantedRun = z.union([
  wantedRequest,
  z.strictObject({ kind: z.literal('retry'), keyId: z.string(), request: z.string() }),
]);

/** What is asked of the run of a request, each at a path of its own. */
const actions = ['read', 'cancel', 'delivered'] as const;

/** What other processes are answered with. */
export interface PeerListenerOptions {
  readonly host: string;
  /** The system chooses one for 0. */
  readonly port: number;
  readonly token: string;
  /** The certificate and its key; without them the listener speaks HTTP. */
  readonly certificates: Certificates | null;
  readonly join: (wanted: WantedRun, peer: PeerAnswer) => Promise<void>;
  readonly noteDelivered: (wanted: WantedRequest) => void;
  readonly respond: (wanted: WantedRequest, action: ResponseAction) => Promise<string | null>;
  readonly clock: Clock;
  readonly onFault: ReportFault;
}

/** Opens the listener on which other processes ask for what this one has in memory; resolves with its address. */
export async function openPeerListener(options: PeerListenerOptions) {
  const { host, port, certificates } = options;
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    response.on('error', () => {});
    answer(request, response, options).catch((error: unknown) => {
      options.onFault('another process could not be answered', error);
      response.destroy();
    });
  };
  const server: Server =
    certificates === null ? createServer(serve) : createTlsServer({ ...certificates }, serve);
  server.maxConnections = maxConnections;
  // Not by way of the primary process of several workers: each has an address of its own.
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  const { port: found } = server.address() as AddressInfo;
  return {
    address: `${certificates === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${found}`,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: PeerListenerOptions,
): Promise<void> {
  const refuse = (status: number): void => void response.writeHead(status, { connection: 'close' }).end();
  if (!isSame(request.headers.authorization ?? '', `Bearer ${options.token}`)) return refuse(401);
  const question = parseJson(await readQuestion(request));
  if (request.method !== 'POST') return refuse(404);
  if (request.url === '/join') {
    const wanted = wantedRun.safeParse(question);
    return wanted.success ? options.join(wanted.data, answerOver(response, options.clock)) : refuse(400);
  }
  const action = actions.find((one) => request.url === `/${one}`);
  if (action === undefined) return refuse(404);
  const asked = wantedRequest.safeParse(question);
  if (!asked.success) return refuse(400);
  if (action === 'delivered') {
    options.noteDelivered(asked.data);
    return void response.writeHead(204).end();
  }
  const found = await options.respond(asked.data, action);
  if (found === null) return refuse(404);
  response.writeHead(200, { 'content-type': jsonType }).end(found);
}

/** Whether two texts are the same, in a time that says nothing of where they differ. */
function isSame(presented: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(digest(presented)), Buffer.from(digest(expected)));
}

/** Reads a question; empty where it is too large. */
async function readQuestion(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxQuestionBytes) return '';
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

/** Answers with the events of a run, a line of JSON each, and with empty lines between them. */
function answerOver(response: ServerResponse, clock: Clock): PeerAnswer {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  let cancel: (() => void) | null = null;
  const isClosed = (): boolean => response.destroyed || response.writableEnded;
  const beAlive = (): void => {
    if (!response.writableNeedDrain) response.write('\n');
    cancel = clock.schedule(aliveMs, beAlive);
  };
  beAlive();
  response.on('close', () => cancel?.());
  return {
    // Bytes: of texts with other characters than ASCII, Node forgets to say when they are sent.
    send: (event) => isClosed() || response.write(Buffer.from(`${JSON.stringify(event)}\n`)),
    drained() {
      if (!response.writableNeedDrain || isClosed()) return null;
      const cancelCut = clock.schedule(maxUnreadMs, () => response.destroy());
      return eventOf(response, 'drain').finally(cancelCut);
    },
    onLeft(callback) {
      if (response.destroyed) return callback();
      response.on('close', () => {
        if (!response.writableFinished) callback();
      });
    },
    async end() {
      cancel?.();
      if (isClosed()) return;
      response.end();
      await eventOf(response, 'finish');
    },
    async cut() {
      response.destroy();
    },
  };
}

/** Resolves with an event of an answer, or when its connection is closed. */
function eventOf(response: ServerResponse, event: 'drain' | 'finish'): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off(event, done);
      response.off('close', done);
      resolve();
    };
    response.on(event, done);
    response.on('close', done);
  });
}
