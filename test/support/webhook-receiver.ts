import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { plant } from './canaries.ts';

/** An event as a receiver reads it from the body. */
export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * What a receiver does with a request: `accept` handles the event; `lose` handles it, but its answer is lost; `hold` handles
 * it, and answers when it is let go; the others do not handle it.
 */
type Conduct = 'accept' | 'lose' | 'hold' | 'cut' | 'slow' | number;

/** A receiver of webhooks on loopback, which verifies each request and handles an event once by its id. */
export interface WebhookReceiver {
  readonly url: string;
  readonly secret: string;
  /** The events in the order in which they were handled, each id once. */
  readonly handled: ReceivedEvent[];
  /** How many requests came, and how many of them had an id that was handled before. */
  readonly requests: number;
  readonly repeated: number;
  /** What is wrong with requests that came. */
  readonly faults: string[];
  readonly seen: { readonly headers: IncomingHttpHeaders; readonly body: string }[];
  play(conduct: Conduct | (() => Conduct)): void;
  /** Accepts the requests that are held. */
  letGo(): void;
  /** Closes the port, or opens it again. */
  goDown(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

const secret = `whsec_${Buffer.from('a secret of thirty-two bytes ....').toString('base64')}`;

/** Why a request is not of the sender, as the documentation has receivers check it; `null` if it is. */
function whyForged(headers: IncomingHttpHeaders, body: string): string | null {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const expected = createHmac('sha256', key)
    .update(`${String(id)}.${String(timestamp)}.${body}`)
    .digest();
  const isOurs = String(headers['webhook-signature'])
    .split(' ')
    .some((each) => {
      const [version, signature = ''] = each.split(',');
      const given = Buffer.from(signature, 'base64');
      return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
    });
  if (!isOurs) return 'a wrong signature';
  return (JSON.parse(body) as ReceivedEvent).id === id ? null : 'another id in the body';
}

export async function startReceiver(): Promise<WebhookReceiver> {
  plant(secret);
  const handled = new Map<string, ReceivedEvent>();
  const list: ReceivedEvent[] = [];
  const faults: string[] = [];
  const seen: WebhookReceiver['seen'] = [];
  const held: (() => void)[] = [];
  let conduct = (): Conduct => 'accept';
  let requests = 0;
  let repeated = 0;
  const handle = (body: string): void => {
    const event = JSON.parse(body) as ReceivedEvent;
    const before = handled.get(event.id);
    if (before !== undefined) {
      repeated++;
      if (JSON.stringify(before) !== JSON.stringify(event)) faults.push(`${event.id} has changed`);
      return;
    }
    handled.set(event.id, event);
    list.push(event);
  };
  const answer = (response: ServerResponse, body: string): void => {
    const now = conduct();
    if (now === 'accept' || now === 'lose' || now === 'hold') handle(body);
    if (now === 'accept') response.writeHead(204).end();
    else if (now === 'hold') held.push(() => void response.writeHead(204).end());
    else if (typeof now === 'number') response.writeHead(now, { location: '/elsewhere' }).end('no');
    else if (now !== 'slow') response.destroy();
  };
  const open = (port: number): Promise<Server> => {
    const server = createServer((request, response) => {
      let body = '';
      requests++;
      request.on('data', (chunk: Buffer) => (body += chunk.toString('utf8')));
      request.on('end', () => {
        const fault = whyForged(request.headers, body);
        if (fault !== null) faults.push(fault);
        seen.push({ headers: request.headers, body });
        answer(response, body);
      });
    });
    return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
  };
  const end = async (server: Server): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  let server: Server | null = await open(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook?token=a-secret-in-the-query`,
    secret,
    handled: list,
    get requests() {
      return requests;
    },
    get repeated() {
      return repeated;
    },
    faults,
    seen,
    letGo() {
      for (const answerHeld of held.splice(0)) answerHeld();
    },
    play: (next) => void (conduct = typeof next === 'function' ? next : () => next),
    async goDown() {
      if (server !== null) await end(server);
      server = null;
    },
    async comeBack() {
      server ??= await open(port);
    },
    async close() {
      if (server !== null) await end(server);
      server = null;
    },
  };
}
