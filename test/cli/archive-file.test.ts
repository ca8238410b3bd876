import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readArchive, writeArchive } from '../../src/cli/archive/archive-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const lineOf = (id: number, model: string): string =>
  `${JSON.stringify({ request_id: `req_${id}`, outcome: 'completed', charge: '0.00003', model })}\n`;

/** Bytes in pieces of some length, as they come over a connection. */
async function* inPieces(bytes: Buffer, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

test('an archive is read by its line feeds alone: U+2028, U+2029 and U+0085 in a record end no line', async () => {
  const folder = makeTemporaryFolder();
  const lines = ['a\u2028b', 'a\u2029b', 'a\u0085b', 'ü'].map((model, id) => lineOf(id, model));
  for (const length of [1, 7, 10_000]) {
    const file = join(folder, `old-${length}`);
    await writeArchive(inPieces(Buffer.from(lines.join('')), length), file, 'json');
    const found = await Array.fromAsync(readArchive(file, 'json'));
    expect(found.map(({ requestId }) => requestId)).toEqual(['req_0', 'req_1', 'req_2', 'req_3']);
    expect(found.map(({ chargeNanos }) => chargeNanos)).toEqual([30_000, 30_000, 30_000, 30_000]);
  }
});

test('an archive whose last line has no end is not taken for a whole one', async () => {
  const file = join(makeTemporaryFolder(), 'old');
  const cut = Buffer.from(lineOf(0, 'a') + lineOf(1, 'b').trimEnd());
  await expect(writeArchive(inPieces(cut, 50), file, 'json')).rejects.toThrow(
    'the last line of the archive has no end',
  );
});
