import { describe, expect, test } from 'vitest';
import { readAnswer } from '../support/client-answer.ts';
import { openStage } from '../support/stage.ts';
import { hasRecordings } from '../support/shared-recordings.ts';
import { readIndependently } from '../support/independent-reading.ts';
import { loadRecordings } from './recording.ts';
import type { Recording } from './recording.ts';

const stages = {
  chat: await openStage(),
  responses: await openStage({ dialect: 'responses' }),
};

describe.skipIf(!hasRecordings)('recorded answers of providers (kept beside the checkout)', () => {
  test.each(['chat', 'responses'] as const)(
    'reach %s clients with the text, the ending and the usage that they have',
    async (clientProtocol) => {
      const tally = new Map<string, number>();
      const differences: unknown[] = [];
      for (const recording of loadRecordings(() => true)) {
        const { protocol, isStream, bytes, file } = recording;
        const truth = readIndependently(protocol, bytes.toString('utf8'), isStream);
        for (const stream of [true, false]) {
          const seen = await replay(recording, clientProtocol, stream);
          const refused = truth.ending === 'tool' || truth.ending === 'failure';
          const expected = {
            ending: refused ? 'failure' : truth.ending,
            text: refused ? seen.text : truth.text,
            usage: refused ? seen.usage : truth.usage,
          };
          const same = JSON.stringify(expected) === JSON.stringify({ ...seen, code: undefined });
          const isPart = truth.text.startsWith(seen.text) || truth.text === '';
          const says = truth.ending !== 'tool' || seen.code === 'upstream_invalid';
          if (!same || !isPart || !says) differences.push({ file, stream, expected, seen });
          const form = `${protocol} ${isStream ? 'stream' : 'body'} -> ${clientProtocol} ${stream ? 'stream' : 'body'}`;
          tally.set(form, (tally.get(form) ?? 0) + 1);
        }
      }
      expect(differences).toEqual([]);
      for (const [form, count] of tally) process.stdout.write(`${form}: ${count}, differences: 0\n`);
    },
  );
});

/** Has the upstream send a recording, and reads what a client gets of it. */
async function replay(recording: Recording, clientProtocol: 'chat' | 'responses', stream: boolean) {
  const { upstream, gateway } = stages[recording.protocol];
  upstream.play((response) => {
    response.writeHead(200, recording.contentType === '' ? {} : { 'content-type': recording.contentType });
    response.end(recording.bytes);
  });
  return readAnswer(gateway, clientProtocol, stream);
}
