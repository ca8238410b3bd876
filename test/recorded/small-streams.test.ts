import { describe, expect, test } from 'vitest';
import { dialects } from '../../src/protocol/upstream/dialects.ts';
import type { DialectName } from '../../src/protocol/upstream/dialects.ts';
import { readStream } from '../support/client-answer.ts';
import { readIndependently } from '../support/independent-reading.ts';
import { anthropic, gemini } from '../support/providers/native-scripts.ts';
import { openai, openaiResponses } from '../support/providers/openai-scripts.ts';
import { rewriteBytes } from '../support/rewrite-bytes.ts';

/** A small stream of each dialect, which is cut at every byte; `cuts.long.test.ts` and `paths.long.test.ts` cut recordings. */
const streams = {
  chat: openai.stream,
  responses: openaiResponses.stream,
  anthropic: anthropic.stream,
  gemini: gemini.stream,
};
const cases = (Object.keys(streams) as DialectName[]).flatMap((dialect) =>
  (['chat', 'responses'] as const).map((client) => [dialect, client] as const),
);

describe('a small stream', () => {
  test.each(cases)(
    'of %s that ends at any byte is complete for %s clients only with an explicit end',
    (dialect, client) => {
      const bytes = Buffer.from(streams[dialect]);
      let whole = 0;
      for (let length = 0; length <= bytes.length; length++) {
        const part = bytes.subarray(0, length);
        const { ending } = readStream(client, rewriteBytes(dialects[dialect], client, [part]));
        const truth = readIndependently(dialect, part.toString(), true).ending;
        expect({ length, ending }).toEqual({ length, ending: truth });
        if (truth !== 'failure') whole++;
      }
      expect(whole).toBeGreaterThan(0);
      expect(whole).toBeLessThan(bytes.length / 2);
    },
  );

  test.each(cases)(
    'of %s yields the same bytes for %s clients on both paths, cut at any byte or at each',
    (dialect, client) => {
      const bytes = Buffer.from(streams[dialect]);
      const complete = rewriteBytes(dialects[dialect], client, [bytes], false);
      const splits = Array.from(bytes, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
      for (const pieces of [...splits, Array.from(bytes, (byte) => Uint8Array.of(byte))])
        for (const isFast of [true, false])
          expect(rewriteBytes(dialects[dialect], client, pieces, isFast)).toBe(complete);
    },
  );
});
