import { chunked, hiddenRequest, makeCase } from './raw-case.ts';
import type { RawCase, RawTable, Subject } from './raw-case.ts';

/** Values of Transfer-Encoding that some parsers read as `chunked` and others don't. */
const badEncodings: readonly string[] = [
  '',
  'identity',
  'gzip',
  'gzip, chunked',
  'identity, chunked',
  'chunked, identity',
  'chunked, chunked',
  ',chunked',
  'chunked,',
  'x',
  'xchunked',
  'chunkedx',
  'chunked;q=1',
  '"chunked"',
  "'chunked'",
  'chunk',
  'chunked chunked',
  '\u000bchunked',
  'chunked\u000b',
  'chun\u212aed',
];

/** Headers that announce chunks in a form that a parser may overlook. */
const badEncodingLines: readonly (readonly string[])[] = [
  ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: x', 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', 'transfer-encoding: x'],
  ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding : chunked'],
  [' Transfer-Encoding: chunked'],
  ['X: y', '\tTransfer-Encoding: chunked'],
  ['Transfer-Encoding:', ' chunked'],
  ['Transfer-Encoding\u0000: chunked'],
  ['Transfer-Encoding: chunked\u0000'],
  ['X: y\rTransfer-Encoding: chunked'],
  ['X: y\nTransfer-Encoding: chunked'],
  ['Content-Length: 3', 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', 'Content-Length: 3'],
  ['Transfer-Encoding: chunked', 'Content-Length: 0'],
];

/** Lengths that are none, or several. */
const badLengths: readonly (readonly string[])[] = [
  ['Content-Length: +5'],
  ['Content-Length: -1'],
  ['Content-Length: 5,5'],
  ['Content-Length: 5, 5'],
  ['Content-Length: 5 5'],
  ['Content-Length: 0x5'],
  ['Content-Length: 5.0'],
  ['Content-Length: 1e1'],
  ['Content-Length: five'],
  ['Content-Length: '],
  ['Content-Length: 5;x'],
  ['Content-Length: "5"'],
  ['Content-Length: \u000b5'],
  ['Content-Length: 99999999999999999999999'],
  ['Content-Length: 5', 'Content-Length: 5'],
  ['Content-Length: 5', 'Content-Length: 6'],
  ['Content-Length: 5', 'content-length: 0'],
  ['Content-Length : 5'],
  ['Content-Length\t: 5'],
  [' Content-Length: 5'],
  ['Content-Length:', ' 5'],
  ['Content-Length\u0000: 5'],
];

/** What may be broken in chunks: the body as it is sent, for a body of text. */
const badChunks: readonly (readonly [name: string, write: (body: string, size: string) => string])[] = [
  ['a size with 0x', (body, size) => `0x${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a size with a plus', (body, size) => `+${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a negative size', (body, size) => `-${size}\r\n${body}\r\n0\r\n\r\n`],
  ['a size with a blank before', (body, size) => ` ${size}\r\n${body}\r\n0\r\n\r\n`],
  ['an underscore', (body, size) => `${size}_0\r\n${body}\r\n0\r\n\r\n`],
  ['no size', (body) => `\r\n${body}\r\n0\r\n\r\n`],
  ['a size beyond 64 bits', (body) => `fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`],
  ['a line feed behind the size', (body, size) => `${size}\n${body}\r\n0\r\n\r\n`],
  ['a return behind the size', (body, size) => `${size}\r${body}\r\n0\r\n\r\n`],
  ['a control character in an extension', (body, size) => `${size};a=\u0001\r\n${body}\r\n0\r\n\r\n`],
  ['a line feed in an extension', (body, size) => `${size};a\nb\r\n${body}\r\n0\r\n\r\n`],
  ['an endless extension', (body, size) => `${size};${'a'.repeat(30_000)}\r\n${body}\r\n0\r\n\r\n`],
  ['more data than the size', (body, size) => `${size}\r\n${body}x\r\n0\r\n\r\n`],
  ['no line end behind the data', (body, size) => `${size}\r\n${body}0\r\n\r\n`],
  ['a line feed behind the data', (body, size) => `${size}\r\n${body}\n0\r\n\r\n`],
  ['a broken trailer', (body, size) => `${size}\r\n${body}\r\n0\r\nA B: c\r\n\r\n`],
  ['a trailer with a length', (body, size) => `${size}\r\n${body}\r\n0\r\nContent-Length: 5\r\n\r\n`],
  ['a continued trailer', (body, size) => `${size}\r\n${body}\r\n0\r\nA: b\r\n c\r\n\r\n`],
];

/** Odd chunks that are good. */
const goodChunks: readonly (readonly [name: string, write: (body: string, size: string) => string])[] = [
  ['upper case and leading zeros', (body, size) => `000${size.toUpperCase()}\r\n${body}\r\n0\r\n\r\n`],
  ['an extension', (body, size) => `${size};name=value;other="x y"\r\n${body}\r\n0\r\n\r\n`],
  ['a chunk for each byte', (body) => `${body.replaceAll(/[^]/g, '1\r\n$&\r\n')}0\r\n\r\n`],
  [
    'trailers that name a key and a host',
    (body, size) => `${size}\r\n${body}\r\n0\r\nAuthorization: Bearer x\r\nHost: evil\r\n\r\n`,
  ],
];

/** Cases of where a body ends: the hidden request behind them must never run. */
export function framingTables(subjects: readonly Subject[]): readonly RawTable[] {
  const of = (make: (subject: Subject) => readonly RawCase[]): readonly RawCase[] => subjects.flatMap(make);
  const withBody = (make: (subject: Subject) => readonly RawCase[]): readonly RawCase[] =>
    subjects.filter(({ body }) => body('x') !== '').flatMap(make);
  const size = (body: string): string => body.length.toString(16);
  const announce = ['Transfer-Encoding: chunked'];
  return [
    {
      title: 'a Transfer-Encoding other than one chunked is refused with 400, and so is one with a length',
      cases: of((subject) =>
        [...badEncodings.map((value) => [`Transfer-Encoding: ${value}`]), ...badEncodingLines].map((lines) =>
          makeCase(
            subject,
            JSON.stringify(lines),
            { framing: chunked(...lines), behind: hiddenRequest(subject) },
            400,
          ),
        ),
      ),
    },
    {
      title: 'a Transfer-Encoding in HTTP/1.0 is refused with 400',
      cases: of((subject) =>
        ['chunked', 'identity', 'gzip, chunked'].map((value) =>
          makeCase(
            subject,
            `1.0 ${value}`,
            {
              version: 'HTTP/1.0',
              framing: chunked(`Transfer-Encoding: ${value}`),
              lines: ['Connection: keep-alive'],
              behind: hiddenRequest(subject),
            },
            400,
          ),
        ),
      ),
    },
    {
      title: 'one chunked in any case is served',
      cases: withBody((subject) =>
        ['Transfer-Encoding: chunked', 'transfer-encoding:CHUNKED', 'TRANSFER-ENCODING: \t Chunked '].map(
          (line) => makeCase(subject, line, { framing: chunked(line) }, 'success'),
        ),
      ),
    },
    {
      title: 'a Content-Length that is not one number is refused with 400',
      cases: of((subject) =>
        badLengths.map((lines) =>
          makeCase(
            subject,
            JSON.stringify(lines),
            { framing: (body) => ({ lines, body }), behind: hiddenRequest(subject) },
            400,
          ),
        ),
      ),
    },
    {
      title: 'broken chunks are refused with 400',
      cases: withBody((subject) =>
        badChunks.map(([name, write]) =>
          makeCase(
            subject,
            name,
            {
              framing: (body) => ({ lines: announce, body: write(body, size(body)) }),
              behind: hiddenRequest(subject),
            },
            name === 'an endless extension' ? 413 : 400,
          ),
        ),
      ),
    },
    {
      title: 'odd chunks that are good are served, and their trailers are not used',
      cases: withBody((subject) =>
        goodChunks.map(([name, write]) =>
          makeCase(
            subject,
            name,
            { framing: (body) => ({ lines: announce, body: write(body, size(body)) }) },
            'success',
          ),
        ),
      ),
    },
    {
      title: 'a body that never comes to its end is refused with 408 by the deadline',
      cases: withBody((subject) => [
        makeCase(
          subject,
          'a short body',
          { framing: (body) => ({ lines: ['Content-Length: 9999'], body }) },
          408,
        ),
        makeCase(
          subject,
          'no last chunk',
          { framing: (body) => ({ lines: announce, body: `${size(body)}\r\n${body}\r\n0\r\n` }) },
          408,
        ),
      ]),
    },
  ];
}
