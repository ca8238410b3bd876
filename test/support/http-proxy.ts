import { createServer, request as sendRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** An HTTP proxy on loopback, for tunnels (CONNECT) and for requests with a whole address. */
export interface HttpProxy {
  /** Its address, without a user and password. */
  readonly url: string;
  readonly port: number;
  /** What it was asked for, such as `CONNECT localhost:443` or `POST http://127.0.0.1:8000/v1/chat/completions`. */
  readonly asked: string[];
  /** The user and password that it asks for; `null` for none. */
  credentials: string | null;
  /** The status with which it refuses everything; `null` to serve. */
  refuses: number | null;
  /** Whether it closes a connection when a second request with a whole address comes on it, and how often it has. */
  closesKept: boolean;
  readonly closed: number;
  /** Whether it leaves every request without an answer. */
  isSilent: boolean;
  /** Ends all connections at once, with those behind it. */
  cut(): void;
  close(): Promise<void>;
}

export async function startHttpProxy(): Promise<HttpProxy> {
  const sockets = new Set<Socket>();
  const used = new WeakSet<Socket>();
  let closed = 0;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  };
  /** The status of a refusal; `null` to serve. */
  const refusalOf = ({ headers }: IncomingMessage): number | null => {
    if (proxy.refuses !== null) return proxy.refuses;
    const expected = `Basic ${Buffer.from(proxy.credentials ?? '').toString('base64')}`;
    return proxy.credentials !== null && headers['proxy-authorization'] !== expected ? 407 : null;
  };
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    proxy.asked.push(`${request.method} ${request.url}`);
    if (proxy.isSilent) return;
    if (proxy.closesKept && used.has(request.socket)) {
      closed++;
      return void request.socket.destroy();
    }
    used.add(request.socket);
    const refusal = refusalOf(request);
    if (refusal !== null) return void response.writeHead(refusal).end('<html>refused by the proxy</html>');
    const { 'proxy-authorization': _password, connection: _hop, ...headers } = request.headers;
    const upstream = sendRequest(request.url ?? '', { method: request.method ?? '', headers, agent: false });
    upstream.on('response', (answer) => {
      const { connection: _kept, 'transfer-encoding': _framing, ...kept } = answer.headers;
      response.writeHead(answer.statusCode ?? 0, kept);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    upstream.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  });
  server.on('connection', keep);
  server.on('connect', (request: IncomingMessage, client: Socket) => {
    proxy.asked.push(`CONNECT ${request.url}`);
    if (proxy.isSilent) return;
    const refusal = refusalOf(request);
    if (refusal !== null) return void client.end(`HTTP/1.1 ${refusal} Refused\r\ncontent-length: 0\r\n\r\n`);
    const { hostname, port } = new URL(`http://${request.url}`);
    const upstream = connect({ host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port) });
    keep(upstream);
    upstream.once('connect', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    upstream.on('error', () => client.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n'));
    upstream.on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const proxy: HttpProxy = {
    url: `http://127.0.0.1:${port}`,
    port,
    asked: [],
    credentials: null,
    refuses: null,
    closesKept: false,
    get closed() {
      return closed;
    },
    isSilent: false,
    cut() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    async close() {
      proxy.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
