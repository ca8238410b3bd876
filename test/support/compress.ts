import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  createZstdCompress,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import type { ServerResponse } from 'node:http';

/** How a body is compressed at once, by a name for it and the `content-encoding` that it is sent with. */
export const compressions: readonly (readonly [
  name: string,
  contentEncoding: string,
  (body: string | Buffer) => Buffer,
])[] = [
  ['gzip', 'gzip', (body) => gzipSync(body)],
  ['x-gzip in capitals', 'X-GZIP', (body) => gzipSync(body)],
  ['deflate', 'deflate', (body) => deflateSync(body)],
  ['deflate without its frame', 'deflate', (body) => deflateRawSync(body)],
  ['brotli', 'br', (body) => brotliCompressSync(body)],
  ['zstd', 'zstd', (body) => zstdCompressSync(body)],
  [
    'three codings and none',
    'gzip, identity, br , zstd',
    (body) => zstdCompressSync(brotliCompressSync(gzipSync(body))),
  ],
];

/** The same event by event: each can be decoded before the next one is written. */
export const streamCompressions = {
  gzip: () => createGzip(),
  deflate: () => createDeflate(),
  'deflate without its frame': () => createDeflateRaw(),
  br: () => createBrotliCompress(),
  zstd: () => createZstdCompress({ flush: constants.ZSTD_e_flush }),
} as const;

/** Begins a compressed stream: `write` resolves when all of an event is on its way, and `end` ends the data, then the answer. */
export function openCompressed(
  response: ServerResponse,
  name: keyof typeof streamCompressions,
): { readonly write: (event: string) => Promise<void>; readonly end: () => void } {
  const engine = streamCompressions[name]();
  const [coding = ''] = name.split(' ');
  response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': coding });
  response.flushHeaders();
  engine.on('data', (bytes: Buffer) => void response.write(bytes));
  engine.on('end', () => void response.end());
  return {
    write: (event) =>
      new Promise((resolve) => {
        engine.write(event, () => engine.flush(() => resolve()));
      }),
    end: () => void engine.end(),
  };
}
