import { eventually } from './eventually.ts';
import { openRaw } from './raw-socket.ts';
import type { TestGateway } from './test-gateway.ts';

/** An answer as it came over a socket. */
export interface RawAnswer {
  readonly status: number;
  /** The header fields in lower case; of repeated ones, the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** A request as an attacker may write it: nothing is checked or encoded, and a body gets its length unless it is chunked. */
export interface RawRequest {
  readonly method?: string;
  readonly target: string;
  /** The header fields, in their order; `Host` is that of the listener unless it is among them. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
}

/** Sends one request to the admin listener over a socket of its own, and reads the whole answer. */
export async function sendRaw(
  { adminUrl }: Pick<TestGateway, 'adminUrl'>,
  { method = 'GET', target, headers = [], body }: RawRequest,
): Promise<RawAnswer> {
  const { host } = new URL(adminUrl);
  const has = (field: string): boolean => headers.some(([name]) => name.toLowerCase() === field);
  const isFramed = body === undefined || has('transfer-encoding');
  const fields = [
    ...(has('host') ? [] : [['Host', host] as const]),
    ...headers,
    ['Connection', 'close'] as const,
    ...(isFramed ? [] : [['Content-Length', String(Buffer.byteLength(body))] as const]),
  ];
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const client = openRaw(adminUrl);
  client.socket.write(Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n${body ?? ''}`, 'latin1'));
  await eventually('the answer is whole', client.isClosed);
  return readAnswer(client.text());
}

function readAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const fields = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return { status: Number(first.split(' ')[1]), headers: new Map(fields), body: text.slice(end + 4) };
}

/** Logs in as a program does; returns the cookie as a browser sends it, and the whole `Set-Cookie`. */
export async function logIn(
  gateway: Pick<TestGateway, 'adminUrl'>,
  token: string,
  headers: RawRequest['headers'] = [],
): Promise<{ readonly cookie: string; readonly setCookie: string }> {
  const { headers: answered, status } = await sendRaw(gateway, {
    method: 'POST',
    target: '/console/session',
    headers: [['Content-Type', 'application/json'], ...headers],
    body: JSON.stringify({ token }),
  });
  const setCookie = answered.get('set-cookie');
  if (setCookie === undefined) throw new Error(`the login was answered with ${status}`);
  return { cookie: setCookie.split(';', 1)[0] ?? '', setCookie };
}
