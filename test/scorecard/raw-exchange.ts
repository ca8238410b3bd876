import { connect } from 'node:net';

/** An answer as it came, from a connection that was closed behind it. */
export interface RawAnswer {
  /** 0 without an answer. */
  readonly status: number;
  readonly body: string;
}

/** How long an exchange may take, in milliseconds: longer than the gateway waits for anything. */
const maxMs = 60_000;

/** Sends a request on a connection of its own, which is closed behind it; its head must have no length. Never rejects. */
export function exchange(url: string, head: readonly string[], body: Buffer): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  const lines = [...head, 'Host: localhost', 'Connection: close', `Content-Length: ${body.length}`];
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname });
    const chunks: Buffer[] = [];
    socket.setTimeout(maxMs, () => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('close', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const [, code = '0'] = /^HTTP\/1\.1 (\d{3}) /.exec(text) ?? [];
      resolve({ status: Number(code), body: text.slice(text.indexOf('\r\n\r\n') + 4) });
    });
    socket.write(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
  });
}

/** The code of an error body; `null` in any other body. */
export function errorCode(body: string): string | null {
  try {
    return (JSON.parse(body) as { error?: { code?: string } }).error?.code ?? null;
  } catch {
    return null;
  }
}
