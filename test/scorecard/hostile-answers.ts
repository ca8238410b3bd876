import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { chatFrames } from '../support/scripted-upstream.ts';

/** How an upstream behaves after it has read a request. */
interface HostileAnswer {
  readonly send: (socket: Socket, place: Place) => void;
  /**
   * Whether the answer is whole as far as HTTP goes, so that a path that is passed on verbatim may show it whole. A text is
   * never whole.
   */
  readonly isWholeHttp?: true;
  /** Whether a stream has text before it breaks off: such a call must not be made again. */
  readonly hasText?: true;
}

interface Place {
  /** An address of the same server that no one may follow. */
  readonly elsewhere: string;
  /** The key that the upstream was sent. */
  readonly key: string;
}

/** How often an endless answer goes on, in milliseconds. */
const dripMs = 50;

const kib = 1_024;
const eol = '\r\n';
const head = (status: string, ...headers: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, ...headers, '', ''].join(eol);
const json = 'content-type: application/json';
const events = 'content-type: text/event-stream';
const chunked = 'transfer-encoding: chunked';
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}${eol}${text}${eol}`;
const lastChunk = chunk('');
const sized = (status: string, type: string, body: string): string =>
  head(status, type, `content-length: ${Buffer.byteLength(body)}`) + body;

const frames = chatFrames(['some ', 'text']);
const [role = '', some = ''] = frames;
const begun = head('200 OK', events, chunked) + chunk(role) + chunk(some);

/** Sends bytes and leaves the connection open. */
const say =
  (bytes: string | Buffer): HostileAnswer['send'] =>
  (socket) =>
    void socket.write(bytes);
/** Sends bytes and ends the connection. */
const end =
  (bytes: string | Buffer): HostileAnswer['send'] =>
  (socket) =>
    void socket.end(bytes);
/** Sends bytes, lets them arrive, and resets the connection. */
const reset =
  (bytes: string): HostileAnswer['send'] =>
  (socket) =>
    void socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), dripMs));
/** Sends bytes, then others again and again until the connection is closed. */
const drip =
  (bytes: string, again: string, everyMs = dripMs): HostileAnswer['send'] =>
  (socket) => {
    socket.write(bytes);
    const timer = setInterval(() => socket.writableNeedDrain || socket.write(again), everyMs);
    socket.once('close', () => clearInterval(timer));
  };
const whole = (send: HostileAnswer['send']): HostileAnswer => ({ send, isWholeHttp: true });
const body = (text: string, type = json): HostileAnswer => whole(say(sized('200 OK', type, text)));
const status = (line: string, text = '{"error":{"message":"no","code":null}}'): HostileAnswer =>
  whole(say(sized(line, json, text)));
const stream = (...texts: readonly string[]): HostileAnswer =>
  whole(say(head('200 OK', events, chunked) + texts.map(chunk).join('') + lastChunk));
const redirect = (line: string): HostileAnswer =>
  whole(
    (socket, { elsewhere }) => void socket.write(head(line, `location: ${elsewhere}`, 'content-length: 0')),
  );
const broken = (send: HostileAnswer['send']): HostileAnswer => ({ send });
const withText = (send: HostileAnswer['send']): HostileAnswer => ({ send, hasText: true });

/** The ways of an upstream to fail, lie and waste time, by their names in URLs. */
export const hostileAnswers: Readonly<Record<string, HostileAnswer>> = {
  // The connection.
  'closes-at-once': broken(end('')),
  'resets-at-once': broken(reset('')),
  'never-answers': broken(say('')),
  // The head.
  garbage: broken(end(Buffer.from([0, 1, 2, 255, 254, 10, 10]))),
  'tls-alert': broken(end(Buffer.from([0x15, 3, 1, 0, 2, 2, 10]))),
  'ssh-banner': broken(say(`SSH-2.0-OpenSSH_9.2${eol}`)),
  'http-0.9': broken(end('<html>hello</html>')),
  'status-of-letters': broken(end(head('abc OK', json))),
  'status-101': broken(say(head('101 Switching Protocols', 'upgrade: x', 'connection: upgrade'))),
  'only-100': broken(drip('', head('100 Continue'))),
  'half-a-head': broken(say(`HTTP/1.1 200 OK${eol}content-ty`)),
  'half-a-head-and-fin': broken(end(`HTTP/1.1 200 OK${eol}content-ty`)),
  'endless-head': broken(drip(`HTTP/1.1 200 OK${eol}`, `x-a: b${eol}`, 1)),
  'header-of-64-KiB': broken(end(head('200 OK', `x: ${'a'.repeat(64 * kib)}`) + lastChunk)),
  'headers-by-the-thousand': broken(end(head('200 OK', ...Array<string>(20_000).fill('a: b')) + lastChunk)),
  'header-with-nul': broken(end(head('200 OK', 'x: a\0b', 'content-length: 2') + '{}')),
  'header-without-colon': broken(end(head('200 OK', 'no colon', 'content-length: 2') + '{}')),
  'two-lengths': broken(end(head('200 OK', json, 'content-length: 2', 'content-length: 20') + '{}')),
  'length-and-chunks': broken(
    end(head('200 OK', json, 'content-length: 2', chunked) + chunk('{}') + lastChunk),
  ),
  'length-of-letters': broken(end(head('200 OK', json, 'content-length: two') + '{}')),
  'negative-length': broken(end(head('200 OK', json, 'content-length: -2') + '{}')),
  // The body as HTTP has it.
  'head-and-silence': broken(say(head('200 OK', json, 'content-length: 20'))),
  'body-too-short': broken(end(head('200 OK', json, 'content-length: 200') + '{"choices":[')),
  'chunk-size-of-letters': broken(end(`${head('200 OK', json, chunked)}zz${eol}{}${eol}${lastChunk}`)),
  'chunk-size-too-large': broken(end(`${head('200 OK', json, chunked)}ffffffffffffffffff${eol}{}${eol}`)),
  'no-last-chunk': broken(end(head('200 OK', json, chunked) + chunk('{}'))),
  'reset-in-a-chunk': broken(reset(`${head('200 OK', json, chunked)}ff${eol}{`)),
  'endless-body': broken(drip(head('200 OK', json, chunked), chunk(' '.repeat(64 * kib)), 1)),
  // Redirects.
  'redirect-301': redirect('301 Moved Permanently'),
  'redirect-302': redirect('302 Found'),
  'redirect-307': redirect('307 Temporary Redirect'),
  'redirect-308': redirect('308 Permanent Redirect'),
  // Statuses.
  'status-204': whole(say(head('204 No Content'))),
  'status-304': whole(say(head('304 Not Modified'))),
  'status-401-with-the-key': whole(
    (socket, { key }) =>
      void socket.write(sized('401 Unauthorized', json, `{"error":{"message":"Incorrect key: ${key}"}}`)),
  ),
  'status-402': status('402 Payment Required'),
  'status-403': status('403 Forbidden'),
  'status-418': status("418 I'm a teapot"),
  'status-429-for-a-day': whole(
    say(head('429 Too Many Requests', json, 'retry-after: 86400', 'content-length: 2') + '{}'),
  ),
  'status-500-in-html': whole(say(sized('500 Oops', 'content-type: text/html', '<html>stack trace</html>'))),
  'status-503': status('503 Service Unavailable'),
  'status-999': status('999 What'),
  // A status 200 that is none.
  'empty-body': body(''),
  html: body('<html>Sign in</html>', 'content-type: text/html'),
  'plain-text': body('some text', 'content-type: text/plain'),
  'half-a-json': body('{"choices":[{"message":{"content":"some'),
  null: body('null'),
  list: body('[]'),
  'error-with-200': body('{"error":{"message":"no","code":"x"}}'),
  'without-choices': body('{"id":"x","object":"chat.completion"}'),
  'empty-choices': body('{"choices":[]}'),
  'content-of-numbers': body('{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}'),
  'deep-json': body('['.repeat(1_000_000)),
  '20-MiB-of-text': body(
    `{"choices":[{"message":{"content":"${'a'.repeat(20 * kib * kib)}"},"finish_reason":"stop"}]}`,
  ),
  'gzip-that-is-cut-off': whole(
    say(
      Buffer.concat([
        Buffer.from(head('200 OK', json, 'content-encoding: gzip', 'connection: close')),
        gzipSync('{"choices":[{"message":{"content":"some text"},"finish_reason":"stop"}]}').subarray(0, -9),
      ]),
    ),
  ),
  'gzip-without-a-label': whole(
    say(
      Buffer.concat([
        Buffer.from(head('200 OK', json, 'connection: close')),
        gzipSync('{"choices":[{"message":{"content":"some text"},"finish_reason":"stop"}]}'),
      ]),
    ),
  ),
  // Streams.
  'stream-of-nothing': stream(),
  'stream-of-a-role': stream(role),
  'stream-without-finish': { ...stream(role, some), hasText: true },
  'stream-done-too-early': { ...stream(role, some, 'data: [DONE]\n\n'), hasText: true },
  'stream-with-an-error': { ...stream(role, some, 'data: {"error":{"message":"no"}}\n\n'), hasText: true },
  'stream-of-broken-json': { ...stream(role, some, 'data: {"choices":[{\n\n'), hasText: true },
  'stream-of-html': stream('<html>\n\n'),
  'stream-line-without-end': withText(
    drip(begun, chunk(`data: ${'a'.repeat(64 * kib)}`.slice(0, 64 * kib)), 1),
  ),
  'stream-stalls': withText(say(begun)),
  'stream-of-pings': withText(drip(begun, chunk(': ping\n\n'))),
  'stream-resets': withText(reset(begun)),
  'stream-ends-in-a-chunk': withText(end(`${begun}ff${eol}data: {`)),
  'stream-ends-without-last-chunk': withText(end(begun)),
};

/** A server of all of them: the first part of a path names one. */
export interface HostileUpstream {
  readonly origin: string;
  /** The requests by the name of the behaviour. */
  readonly asked: ReadonlyMap<string, number>;
  /** How many redirects were followed. */
  readonly followed: number;
  close(): void;
}

export async function startHostileUpstream(key: string): Promise<HostileUpstream> {
  const sockets = new Set<Socket>();
  const asked = new Map<string, number>();
  let followed = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('end', () => setTimeout(() => socket.destroy(), dripMs));
    let read = '';
    socket.on('data', (bytes: Buffer) => {
      read += bytes.toString('latin1');
      const length = Number(/content-length: (\d+)/i.exec(read)?.[1] ?? 0);
      const bodyAt = read.indexOf(eol + eol) + 4;
      if (bodyAt < 4 || read.length < bodyAt + length) return;
      const [, name = ''] = /^\w+ \/([^/ ]+)/.exec(read) ?? [];
      read = '';
      if (name === 'elsewhere') followed++;
      asked.set(name, (asked.get(name) ?? 0) + 1);
      hostileAnswers[name]?.send(socket, { elsewhere: `${origin}/elsewhere`, key });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    asked,
    get followed() {
      return followed;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
