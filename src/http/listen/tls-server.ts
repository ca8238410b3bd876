import { constants } from 'node:crypto';
import type { IncomingMessage, Server, ServerOptions } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import type { ConnectionRefusal } from '../../domain/edge.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { connectionOf } from '../connections/connection.ts';
import type { OwnResponse } from '../answers/own-response.ts';

/** How long a handshake may take, in milliseconds. Node's own limit begins anew with every byte. */
const handshakeMs = 10_000;

/** A certificate with its chain, and its key, both in PEM. */
interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that may be replaced while the server runs. */
export interface CertificateSource {
  readonly current: Certificate;
  /** Calls back with every later one. */
  onChange(use: (certificate: Certificate) => void): void;
}

/** Creates an HTTP server that speaks TLS. New connections get the certificate that is current then. */
export function createTlsServer(
  certificate: CertificateSource,
  options: ServerOptions<typeof IncomingMessage, typeof OwnResponse>,
  serve: (request: IncomingMessage, response: OwnResponse) => void,
): Server {
  const server = createServer(
    { ...options, ...contextOf(certificate.current), ALPNProtocols: ['http/1.1'] },
    serve,
  );
  certificate.onChange((next) => server.setSecureContext(contextOf(next)));
  return server;
}

function contextOf({ cert, key }: Certificate): SecureContextOptions {
  // A second handshake on a connection has no deadline, and clients have no use for one. TLS 1.3 knows none.
  return { cert, key, minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}

/**
 * Follows the handshakes of a server, whose connections have been accepted before them: each has its time, and goes on
 * over TLS afterwards.
 */
export function followHandshakes(
  server: Server,
  clock: Clock,
  onRefused: (reason: ConnectionRefusal) => void,
): void {
  const deadlines = new WeakMap<Socket, () => void>();
  server.on('connection', (raw: Socket) => {
    if (raw.destroyed) return;
    const cancel = clock.schedule(handshakeMs, () => {
      raw.destroy();
      onRefused('handshake_timeout');
    });
    deadlines.set(raw, cancel);
    raw.once('close', cancel);
  });
  // Before Node's own listener, which begins to read requests.
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    // As sockets of Node's server without TLS: a client that has sent all of its requests waits for the answers. Not
    // before, or a client that closes without a handshake, such as a balancer's TCP check, would stay open until its deadline.
    socket.allowHalfOpen = true;
    // The connection below a TLS socket, to which Node has no public way.
    const { _parent: raw } = socket as TLSSocket & { readonly _parent: Socket };
    deadlines.get(raw)?.();
    connectionOf(raw)?.secure(socket);
  });
  server.on('tlsClientError', ({ code }: NodeJS.ErrnoException) => {
    // A reset is also that of a connection which was refused, or closed at its deadline.
    if (code !== 'ECONNRESET') onRefused('handshake_failed');
  });
}
