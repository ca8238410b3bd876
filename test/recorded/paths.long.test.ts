import { describe, expect, test } from 'vitest';
import { dialects } from '../../src/protocol/upstream/dialects.ts';
import { rewriteBytes } from '../support/rewrite-bytes.ts';
import { hasRecordings } from '../support/shared-recordings.ts';
import { loadRecordings } from './recording.ts';

/** How many bytes are read of each stream, cut in two again and again: a small one at each byte, a large one at some. */
const cutBytes = 100_000;

const streams = hasRecordings ? loadRecordings(({ isStream }) => isStream) : [];

describe.skipIf(!hasRecordings)('recorded streams (kept beside the checkout)', () => {
  test.each(['chat', 'responses'] as const)(
    'give %s clients the same bytes on the fast path as on the complete one, wherever they are cut',
    (clientProtocol) => {
      const differences: unknown[] = [];
      let cuts = 0;
      for (const { protocol, bytes, file } of streams) {
        const dialect = dialects[protocol];
        const complete = rewriteBytes(dialect, clientProtocol, [bytes], false);
        const compare = (pieces: readonly Uint8Array[], how: string): void => {
          if (rewriteBytes(dialect, clientProtocol, pieces, true) !== complete)
            differences.push({ file, how });
        };
        compare([bytes], 'whole');
        compare(
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
          'byte by byte',
        );
        const step = Math.max(1, bytes.length ** 2 / cutBytes);
        for (let cut = 1; cut < bytes.length; cut += step) {
          const at = Math.floor(cut);
          compare([bytes.subarray(0, at), bytes.subarray(at)], `cut at ${at}`);
          cuts++;
        }
      }
      expect(differences).toEqual([]);
      expect(cuts).toBeGreaterThan(10_000);
      process.stdout.write(`${clientProtocol}: ${streams.length} streams, ${cuts} cuts, differences: 0\n`);
    },
    120_000,
  );
});
