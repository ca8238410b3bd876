/** Pieces that mean something to a parser of HTTP. */
const pieces: readonly string[] = [
  '\r\n',
  '\n',
  '\r',
  '\r\n\r\n',
  ':',
  ' ',
  '\t',
  '\u0000',
  '\u00ff',
  ',',
  ';',
  '"',
  '{',
  '[',
  '%00',
  '../',
  '#',
  '?',
  'HTTP/1.0',
  'HTTP/2.0',
  'Content-Length: 5\r\n',
  'Content-Length: -1\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip\r\n',
  'Connection: Upgrade\r\nUpgrade: h2c\r\n',
  'Expect: 100-continue\r\n',
  'Host: other\r\n',
  '0\r\n\r\n',
  '99999999999999999999',
];

/** Changes 1 to 4 places of a request: bytes are replaced, removed, doubled, swapped, cut off, or a piece is put in. */
export function mutateBytes(text: string, random: () => number): string {
  const below = (limit: number): number => Math.floor(random() * limit);
  let bytes = text;
  for (let left = 1 + below(4); left > 0; left--) {
    const at = below(bytes.length + 1);
    const length = 1 + below(12);
    const [before, part, after] = [
      bytes.slice(0, at),
      bytes.slice(at, at + length),
      bytes.slice(at + length),
    ];
    const changes = [
      () => before + String.fromCharCode(below(256)) + bytes.slice(at + 1),
      () => before + after,
      () => before + part + part + after,
      () => before + (pieces[below(pieces.length)] ?? '') + bytes.slice(at),
      () => before + part.split('').toReversed().join('') + after,
      () => before,
      () => before + (part === part.toUpperCase() ? part.toLowerCase() : part.toUpperCase()) + after,
    ];
    bytes = changes[below(changes.length)]?.() ?? bytes;
  }
  return bytes;
}
