/** A request of one kind, as its bytes. */
export interface RequestKind {
  readonly name: string;
  readonly bytes: string;
}

/** What each request asks: a number, which the numbered upstream answers, and which belongs to no other client. */
export const question = '900000000000';
const chat = '/v1/chat/completions';
const responses = '/v1/responses';

/** One request of each kind for the public listener. */
export function publicKinds(key: string): readonly RequestKind[] {
  const messages = [{ role: 'user', content: question }];
  const post = (path: string, body: string, secret = key, extra = ''): string =>
    head('POST', path, secret, `${extra}Content-Length: ${Buffer.byteLength(body)}\r\n`) + body;
  const chatBody = (stream: boolean): string => JSON.stringify({ model: 'small', stream, messages });
  const responsesBody = (stream: boolean): string =>
    JSON.stringify({ model: 'small', stream, input: question });
  const chunked = (body: string): string =>
    `${head('POST', chat, key, 'Transfer-Encoding: chunked\r\n')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  return [
    { name: 'a chat, whole', bytes: post(chat, chatBody(false)) },
    { name: 'a chat, streamed', bytes: post(chat, chatBody(true)) },
    { name: 'a response, whole', bytes: post(responses, responsesBody(false)) },
    { name: 'a response, streamed', bytes: post(responses, responsesBody(true)) },
    { name: 'a chat in chunks', bytes: chunked(chatBody(true)) },
    { name: 'a chat, expecting a 100', bytes: post(chat, chatBody(true), key, 'Expect: 100-continue\r\n') },
    { name: 'a large chat', bytes: post(chat, chatBody(true).padEnd(200_000)) },
    {
      name: 'a body above the limit',
      bytes: head('POST', chat, key, 'Content-Length: 99999999999\r\n') + 'x',
    },
    { name: 'an unknown model', bytes: post(chat, '{"model":"none","messages":[]}') },
    { name: 'a broken body', bytes: post(chat, '{"model"') },
    { name: 'a wrong key', bytes: post(chat, chatBody(true), 'sk-wrong') },
    { name: 'the models', bytes: head('GET', '/v1/models', key) },
    { name: 'one model', bytes: head('GET', '/v1/models/small', key) },
    { name: 'an unknown path', bytes: head('GET', '/v1/none', key) },
    { name: 'a method that is not served', bytes: head('DELETE', chat, key) },
    { name: 'CONNECT', bytes: 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n' },
    { name: 'an upgrade', bytes: head('GET', chat, key, 'Connection: Upgrade\r\nUpgrade: websocket\r\n') },
    { name: 'bytes that are no HTTP', bytes: '\u0016\u0003\u0001\u0002\r\n\r\n' },
  ];
}

/** One request of each kind for the admin listener. */
export function adminKinds(token: string): readonly RequestKind[] {
  const post = (method: string, path: string, body: string): string =>
    head(method, path, token, `Content-Length: ${Buffer.byteLength(body)}\r\n`) + body;
  return [
    ...[
      '/admin/keys',
      '/admin/in-flight',
      '/admin/records',
      '/admin/ledger',
      '/admin/backup',
      '/metrics',
      '/healthz',
      '/readyz',
      '/',
    ].map((path) => ({ name: `GET ${path}`, bytes: head('GET', path, token) })),
    { name: 'the keys without a token', bytes: head('GET', '/admin/keys', 'wrong') },
    { name: 'a new key', bytes: post('POST', '/admin/keys', '{"name":"made in the storm"}') },
    { name: 'a key with a broken body', bytes: post('POST', '/admin/keys', '{"name":') },
    { name: 'a key with a wrong field', bytes: post('POST', '/admin/keys', '{"nome":1}') },
    { name: 'a change of no key', bytes: post('PATCH', '/admin/keys/none', '{"name":"x"}') },
    { name: 'the end of no key', bytes: head('DELETE', '/admin/keys/none', token) },
    { name: 'the end of no request', bytes: post('POST', '/admin/in-flight/none/cancel', '{}') },
    { name: 'no HTTP', bytes: 'A\r\nB\r\n\r\n' },
  ];
}

function head(method: string, path: string, secret: string, more = ''): string {
  return (
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secret}\r\n` +
    `Content-Type: application/json\r\n${more}\r\n`
  );
}
