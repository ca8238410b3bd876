import { hiddenRequest, makeCase } from './raw-case.ts';
import type { RawCase, RawTable, Subject } from './raw-case.ts';

/** Headers that a request may have once. */
const singles: readonly (readonly [name: string, value: string])[] = [
  ['Authorization', 'Bearer x'],
  ['Proxy-Authorization', 'Basic eDp5'],
  ['Content-Type', 'text/plain'],
  ['Content-Encoding', 'identity'],
  ['Idempotency-Key', 'x'],
  ['Upgrade', 'h2c'],
  ['Expect', '100-continue'],
];

/** Lines that are no header of HTTP. */
const badLines: readonly string[] = [
  'No-Colon',
  ': no name',
  ' Leading: blank',
  'Blank : before the colon',
  'Tab\t: before the colon',
  'A B: c',
  'A(B): c',
  'Nam\u00e9: c',
  'Nul\u0000: c',
  'A: b\u0000c',
  'A: b\u0001c',
  'A: b\u007fc',
  'A: b\rc',
  'A: b\r\n continued',
  'A: b\r\n\tcontinued',
  'A: b\nX-Injected: c',
  'A: b\r\r\n',
];

/** Headers that are odd and good. */
const goodLines: readonly string[] = [
  'Empty:',
  'X-Bytes: \u00e9\u00ff',
  'X-Tab: a\tb',
  "!#$%&'*+-.^_`|~: all characters of a token",
  'Connection: Authorization, Content-Type, Host',
  'Connection: close, close',
  'Keep-Alive: timeout=9999999',
  'TE: trailers, gzip;q=1',
  'Trailer: Authorization',
  'Max-Forwards: 0',
  'Via: 1.1 a, 1.1 b',
  'X-Forwarded-For: 127.0.0.1',
  'X-Forwarded-Host: evil.example',
  'X-Original-URL: /admin/keys',
  'X-Rewrite-URL: /admin/keys',
  'X-HTTP-Method-Override: DELETE',
  'Transfer_Encoding: chunked',
  'Range: bytes=0-1',
  'If-None-Match: *',
];

/** Cases of headers, and of several requests on a connection. */
export function headerTables(subjects: readonly Subject[]): readonly RawTable[] {
  const of = (make: (subject: Subject) => readonly RawCase[]): readonly RawCase[] => subjects.flatMap(make);
  return [
    {
      title: 'a header that may be sent once is refused with 400 if it is sent twice',
      cases: of((subject) =>
        singles.flatMap(([name, value]) =>
          [name, name.toLowerCase(), name.toUpperCase()].map((again) =>
            makeCase(
              subject,
              `${name} and ${again}`,
              { lines: [`${name}: ${value}`, `${again}: ${value}`], behind: hiddenRequest(subject) },
              400,
            ),
          ),
        ),
      ),
    },
    {
      title: 'a broken header is refused with 400',
      cases: of((subject) => [
        ...badLines.map((line) =>
          makeCase(subject, JSON.stringify(line), { lines: [line], behind: hiddenRequest(subject) }, 400),
        ),
        makeCase(
          subject,
          'line feeds alone',
          { edit: (head) => head.replaceAll('\r\n', '\n'), behind: hiddenRequest(subject) },
          400,
        ),
        makeCase(subject, 'a blank before the first line', { edit: (head) => ` ${head}` }, 400),
        makeCase(
          subject,
          'a blank before the first header',
          { edit: (head) => head.replace('\r\n', '\r\n ') },
          400,
        ),
      ]),
    },
    {
      title: 'a head of too many bytes or fields is refused with 413',
      cases: of((subject) => [
        makeCase(subject, 'a long value', { lines: [`X: ${'y'.repeat(17_000)}`] }, 413),
        makeCase(subject, 'a long name', { lines: [`${'x'.repeat(17_000)}: y`] }, 413),
        makeCase(subject, 'many fields', { lines: Array.from({ length: 300 }, () => 'X: y') }, 413),
        makeCase(
          subject,
          'a second key behind many fields',
          { lines: [...Array.from({ length: 2_100 }, () => 'X:y'), 'Authorization: Bearer x'] },
          413,
        ),
      ]),
    },
    {
      title: 'an odd header is served',
      cases: of((subject) => [
        ...goodLines.map((line) => makeCase(subject, JSON.stringify(line), { lines: [line] }, 'success')),
        makeCase(subject, 'empty lines first', { edit: (head) => `\r\n\r\n${head}` }, 'success'),
        makeCase(subject, '200 fields', { lines: Array.from({ length: 200 }, () => 'X: y') }, 'success'),
      ]),
    },
    {
      title: 'an expectation other than 100-continue is refused with 417, and ignored in HTTP/1.0',
      cases: of((subject) => [
        ...['x', '', '100-continue, x', 'x 100-continue', '200-ok', '100-continue;q=1'].map((value) =>
          makeCase(
            subject,
            `Expect ${JSON.stringify(value)}`,
            { lines: [`Expect: ${value}`], behind: hiddenRequest(subject) },
            417,
          ),
        ),
        makeCase(subject, 'Expect in 1.0', { version: 'HTTP/1.0', lines: ['Expect: x'] }, 'success'),
        makeCase(subject, '100-Continue', { lines: ['Expect: 100-Continue'] }, 'success'),
      ]),
    },
    {
      title: 'an upgrade is refused with 400, but for h2c, which is ignored, and no tunnel is opened',
      cases: of((subject) => [
        ...['websocket', 'WebSocket', 'h2c, websocket', 'TLS/1.0', 'HTTP/2.0', 'h2', ''].map((value) =>
          makeCase(
            subject,
            `Upgrade ${value}`,
            { lines: ['Connection: Upgrade', `Upgrade: ${value}`], behind: hiddenRequest(subject) },
            400,
          ),
        ),
        makeCase(
          subject,
          'Upgrade h2c',
          {
            lines: [
              'Connection: Upgrade, HTTP2-Settings',
              'Upgrade: h2c',
              'HTTP2-Settings: AAMAAABkAAQAAP__',
            ],
          },
          'success',
        ),
      ]),
    },
    {
      title: 'bytes that are not HTTP are refused with 400',
      cases: of((subject) =>
        [
          '\u0016\u0003\u0001\u0002\u0000\u0001',
          'SSH-2.0-x\r\n',
          '\u0000\u0000',
          '{"a":1}\r\n',
          '<html>\r\n',
          'EHLO x\r\n',
        ].map((bytes) => makeCase(subject, JSON.stringify(bytes), { edit: () => bytes }, 400)),
      ),
    },
    {
      title: 'a bad request behind a good one is refused, and what is behind it does not run',
      cases: of((subject) => badFollowers.map((follower) => followed(subject, follower, 'success'))),
    },
    {
      title: 'a request behind a good one whose end is not certain closes the connection, and runs no more',
      cases: of((subject) =>
        uncertainFollowers.map((follower) => followed(subject, follower, 'success or closed')),
      ),
    },
  ];
}

/** A good request with another one behind it, and a hidden one behind that. */
function followed(subject: Subject, follower: string, wanted: 'success' | 'success or closed'): RawCase {
  const parts = {
    edit: (head: string) => head.replace('Connection: close\r\n', ''),
    behind: `${follower}\r\n\r\n${hiddenRequest(subject)}`,
  };
  return makeCase(subject, `then ${JSON.stringify(follower)}`, parts, wanted, { answers: 2 });
}

const badFollowers: readonly string[] = [
  'GET /v1/models HTTP/1.1',
  'GET /v1/models HTTP/1.1\r\nHost: a b',
  'GET http://[/ HTTP/1.1\r\nHost: localhost',
  'GET / HTTP/1.1\r\nHost: localhost\r\nExpect: x',
  'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade',
  'TRACE / HTTP/1.1\r\nHost: localhost',
];

const uncertainFollowers: readonly string[] = [
  'GET /v1/models HTTP/2.0\r\nHost: localhost',
  'GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity, chunked',
  'GET / HTTP/1.1\r\nHost : localhost',
  'NONSENSE',
];
