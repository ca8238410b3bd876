import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { onTestFinished } from 'vitest';

/** A TCP connection without an HTTP client. */
export interface RawSocket {
  readonly socket: Socket;
  /** Everything received so far. */
  readonly text: () => string;
  /** Whether the server has ended or reset it. */
  readonly isClosed: () => boolean;
  /** The code of the socket error; `null` for none. */
  readonly error: () => string | null;
}

/**
 * Opens a connection that ends with the running test, over TLS for `https:`; it is read unless `paused`. Of tests that run
 * at the same time, each gives its own `atEnd`.
 */
export function openRaw(
  url: string,
  { paused = false, from = '127.0.0.1', atEnd = onTestFinished } = {},
): RawSocket {
  const { hostname, port, protocol } = new URL(url);
  const address = { port: Number(port), host: hostname, localAddress: from };
  const raw = connect(address);
  const socket = protocol === 'https:' ? secure(raw, hostname) : raw;
  let text = '';
  let isClosed = false;
  let code: string | null = null;
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? 'unknown'));
  socket.on('end', () => (isClosed = true));
  socket.on('close', () => (isClosed = true));
  if (paused) socket.pause();
  atEnd(() => void socket.destroy());
  return { socket, text: () => text, isClosed: () => isClosed, error: () => code };
}

/** A request with a JSON body and a key. */
export function rawPost(path: string, key: string, body: object): string {
  const text = JSON.stringify(body);
  return (
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

/** TLS over a connection, which can be reset as one without it. */
function secure(raw: Socket, host: string): Socket {
  const socket = connectSecurely({ socket: raw, host });
  socket.resetAndDestroy = () => {
    raw.resetAndDestroy();
    return socket;
  };
  return socket;
}
