import { gzipSync } from 'node:zlib';

/** Stands in a row's bytes for the key of a client, which the test fills in. */
export const keyMark = '{KEY}';
/** Stands in a row's bytes for the operators' token. */
export const tokenMark = '{TOKEN}';

const chat = 'POST /v1/chat/completions';
const question = '{"model":"small","messages":[{"role":"user","content":"x"}]}';
const json = 'Content-Type: application/json';
const known = `Authorization: Bearer ${keyMark}`;
const chunked = 'Transfer-Encoding: chunked';
const codings = ['gzip, chunked', 'identity, chunked', ',chunked', 'chunked, chunked', 'x', ''];

/** A head over HTTP/1.1 unless its line has a version, with a good host unless one is given. */
function head(line: string, ...lines: readonly string[]): string {
  const version = /\/\d+\.\d$/.test(line) ? '' : ' HTTP/1.1';
  const host = lines.some((text) => /^host:/i.test(text)) ? [] : ['Host: localhost'];
  return `${[line + version, ...host, ...lines].join('\r\n')}\r\n\r\n`;
}

const withBody = (line: string, body: string, ...lines: readonly string[]): string =>
  head(line, `Content-Length: ${Buffer.byteLength(body, 'latin1')}`, ...lines) + body;
const ask = (body: string, ...lines: readonly string[]): string =>
  withBody(chat, body, json, known, ...lines);
const list = (count: number, item: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => item(at)).join(',');

/** A row of the table: the attack, its bytes on a connection of their own, and the statuses of the answers. */
export type AttackRow = readonly [attack: string, bytes: string, statuses: readonly number[]];

const each = (status: number, cases: Readonly<Record<string, string>>): readonly AttackRow[] =>
  Object.entries(cases).map(([attack, bytes]) => [attack, bytes, [status]]);
const forms = (
  status: number,
  attack: string,
  values: readonly string[],
  bytes: (value: string) => string,
): readonly AttackRow[] =>
  values.map((value) => [`${attack} ${JSON.stringify(value)}`, bytes(value), [status]]);

/** What both listeners refuse before any route. */
export const refusedHeads: readonly AttackRow[] = [
  ...each(405, {
    CONNECT: head('CONNECT x:1', 'Host: x:1'),
    'CONNECT with a body': withBody('CONNECT x:1', 'x', 'Host: x:1'),
    TRACE: head('TRACE /v1/models'),
  }),
  ...each(400, {
    garbage: 'NONSENSE\r\n\r\n',
    'a request line alone': 'GET /v1/models\r\n\r\n',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'an upgrade': head('GET /v1/models', 'Connection: upgrade', 'Upgrade: websocket'),
    'no Host': 'GET /v1/models HTTP/1.1\r\n\r\n',
    'two Hosts': head('GET /v1/models', 'Host: localhost', 'Host: localhost'),
    'two keys': head('GET /v1/models', known, known),
    'chunks beside a length': `${head(chat, json, known, chunked, 'Content-Length: 5')}0\r\n\r\n`,
    'chunks below another coding': `${head(chat, json, known, 'Transfer-Encoding: x', chunked)}0\r\n\r\n`,
    'chunks in HTTP/1.0': `${head(`${chat} HTTP/1.0`, json, known, chunked)}0\r\n\r\n`,
    'two lengths': `${head(chat, json, known, 'Content-Length: 2', 'Content-Length: 2')}{}`,
  }),
  ...each(417, { 'an expectation': head(chat, 'Expect: x') }),
  ...forms(400, 'Transfer-Encoding', codings, (coding) => {
    return `${head(chat, json, known, `Transfer-Encoding: ${coding}`)}0\r\n\r\n`;
  }),
  ...forms(
    400,
    'the version',
    [
      'HTTP/0.9',
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/10.1',
      'http/1.1',
      'HTTPS/1.1',
      'RTSP/2.0',
      'ICE/1.0',
      'SIP/2.0',
    ],
    (version) => head(`GET /v1/models ${version}`),
  ),
  ...forms(
    400,
    'the method of another protocol:',
    ['DESCRIBE', 'ANNOUNCE', 'SETUP', 'PLAY', 'TEARDOWN', 'GET_PARAMETER', 'REDIRECT', 'RECORD', 'FLUSH'],
    (method) => head(`${method} /v1/models RTSP/1.0`, 'CSeq: 1'),
  ),
  ...forms(400, 'Host', ['', 'a b', 'a,b', 'user@a', 'a/b', 'a:99999999', '[::1', '%'], (host) =>
    head('GET /v1/models', `Host: ${host}`),
  ),
  ...forms(
    400,
    'the target',
    [
      'http://',
      'https://',
      'ftp://',
      'file://',
      'ftp://a/v1/models',
      'http://[',
      'http://a@b/',
      '*',
      'v1/models',
      '/v1/models#x',
    ],
    (target) => head(`GET ${target}`),
  ),
];

const brokenJson = [
  '',
  '{',
  '[1,]',
  '{"a":1,}',
  "{'a':1}",
  '{"a":01}',
  '{"a":.1}',
  '{"a":+1}',
  '{"a":NaN}',
  '{"a":"\t"}',
];
const brokenBytes = [
  '{"a":"\\x"}',
  '{"a":1}{',
  '\xff{}',
  '\xef\xbb{}',
  '\xfe\xff\0{',
  '{"a":"\xed\xa0\x80"}',
  '{}#',
  '/**/{}',
  '\0',
];

/** What the listener for clients answers. */
export const clientRows: readonly AttackRow[] = [
  ['three requests in a packet', head('GET /v1/models').repeat(3), [401, 401, 401]],
  ['a request behind one that is refused', head('GET *') + head('GET /v1/models', known), [400]],
  ...each(401, {
    'no key': head(chat),
    'a body without a key': withBody(chat, question, json),
    'a key with a wrong checksum': head('GET /v1/models', `Authorization: Bearer sk-tg-${'A'.repeat(56)}`),
    'a key in the query': head(`GET /v1/models?key=${keyMark}&api_key=${keyMark}`),
    'chunks without end and a key': `${head(chat, json, chunked)}5\r\nhello\r\n`,
    'a body that never comes, without a key': head(chat, json, 'Content-Length: 1000'),
    'an announced body without a key': head(chat, json, 'Content-Length: 9', 'Expect: 100-continue'),
  }),
  ...forms(
    401,
    'the key as',
    [
      'Authorization: ',
      'Authorization: Bearer ',
      `Authorization: ${keyMark}`,
      `Authorization: Basic ${keyMark}`,
      `Authorization: Bearer "${keyMark}"`,
      `Authorization: Bearer ${keyMark} x`,
      `Authorization: Bearer ${keyMark},${keyMark}`,
      `Proxy-Authorization: Bearer ${keyMark}`,
      `X-Api-Key: ${keyMark}`,
      `Cookie: key=${keyMark}`,
      `Authorization: Bearer ${tokenMark}`,
    ],
    (line) => head('GET /v1/models', line),
  ),
  ...each(413, {
    'a body that is too long': head(chat, json, known, 'Content-Length: 999999999'),
    'one that is announced': head(chat, json, known, 'Content-Length: 999999999', 'Expect: 100-continue'),
    'chunks without end': `${head(chat, json, known, chunked)}20000\r\n${'x'.repeat(0x20000)}\r\n`,
    'a head that is too long': head('GET /v1/models', `X: ${'x'.repeat(20_000)}`),
    'a head of too many lines': head('GET /v1/models', ...Array<string>(300).fill('X: x')),
  }),
  ...each(400, {
    'a passed-on path of a port that is none': withBody('POST http://evil:99999/tokenize', '{}', json, known),
    'a passed-on path of an address that is none': head('GET http://[x]/tokenize', known),
    'too many messages': ask(`{"model":"small","messages":[${list(5_000, () => '{}')}]}`),
    'too many fields': ask(`{"model":"small","messages":[],${list(3_000, (at) => `"f${at}":1`)}}`),
    'a depth of brackets': ask('['.repeat(50_000)),
    'a depth of objects': ask('{"a":'.repeat(10_000)),
  }),
  ...forms(400, 'the body', [...brokenJson, ...brokenBytes], (body) => ask(body)),
  ...forms(
    415,
    'Content-Encoding',
    ['gzip', 'deflate', 'br', 'zstd', 'compress', 'x-gzip', 'gzip, gzip', 'x'],
    (coding) => ask(gzipSync(question).toString('latin1'), `Content-Encoding: ${coding}`),
  ),
  ...forms(
    415,
    'Content-Type',
    ['', 'text/plain', 'application/xml', 'multipart/form-data', 'application/x-www-form-urlencoded', 'json'],
    (type) => withBody(chat, question, known, `Content-Type: ${type}`),
  ),
  ...each(404, {
    'a key in a path': head(`GET /v1/nope/${keyMark}`, known),
    'another key’s request': head('GET /v1/key/requests/req_00000000000000000000000000000000', known),
    'a model that is not there': ask(question.replace('small', 'none')),
  }),
  ...forms(
    404,
    'the operators’ path',
    ['/admin/keys', '//admin/keys', '/v1/../admin/keys', '/%61dmin/keys', '/metrics', '/v1/%2e%2e/metrics'],
    (path) => head(`GET ${path}`, `Authorization: Bearer ${tokenMark}`),
  ),
];

const admin = `Authorization: Bearer ${tokenMark}`;
const paths = ['/metrics', '/healthz', '/readyz', '/admin/keys', '/v1/models'];

/** What the operators' listener answers on a loopback address. */
export const operatorRows: readonly AttackRow[] = [
  ...forms(401, 'by a foreign name:', paths, (path) => head(`GET ${path}`, admin, 'Host: evil.example')),
  ...forms(401, 'from a foreign page:', paths, (path) =>
    head(`GET ${path}`, admin, 'Origin: http://evil.example'),
  ),
  ...forms(
    401,
    'without the token:',
    ['/admin/keys', '/admin/../admin/keys', '/admin//keys', '/admin/%6beys'],
    (path) => head(`GET ${path}`),
  ),
  ...each(404, { 'a path in other letters': head('GET /ADMIN/keys') }),
  [
    'ten wrong tokens before the right one',
    head('GET /admin/keys', 'Authorization: Bearer wrong').repeat(10) + head('GET /admin/keys', admin),
    [...Array<number>(10).fill(401), 200],
  ],
  ...each(429, { 'an eleventh wrong one, a client’s key': head('GET /admin/keys', known) }),
];
