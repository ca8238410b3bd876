import { describe, expect, test } from 'vitest';
import { readAnswer } from '../support/client-answer.ts';
import { openStage } from '../support/stage.ts';
import { hasRecordings } from '../support/shared-recordings.ts';
import { readIndependently } from '../support/independent-reading.ts';
import { loadErrors, loadRecordings } from './recording.ts';
import type { Recording } from './recording.ts';
import type { Reading } from '../support/independent-reading.ts';

const stages = {
  chat: await openStage(),
  responses: await openStage({ dialect: 'responses' }),
  anthropic: await openStage({ dialect: 'anthropic' }),
  gemini: await openStage({ dialect: 'gemini' }),
};

describe.skipIf(!hasRecordings)('recorded answers of providers (kept beside the checkout)', () => {
  test.each(['chat', 'responses'] as const)(
    'reach %s clients with their text, ending and usage',
    async (clientProtocol) => {
      const tally = new Map<string, number>();
      const differences: unknown[] = [];
      for (const recording of loadRecordings(() => true)) {
        const { protocol, isStream, bytes, file } = recording;
        const truth = readIndependently(protocol, bytes.toString('utf8'), isStream);
        for (const stream of [true, false]) {
          const seen = await replay(recording, clientProtocol, stream, truth.usage?.[0]);
          const refused = truth.ending === 'tool' || truth.ending === 'failure';
          const expected = {
            ending: refused ? 'failure' : truth.ending,
            text: refused ? seen.text : truth.text,
            usage: refused ? seen.usage : (knownUsage(truth) ?? countedUsage(truth, seen.usage)),
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

  test.each(['chat', 'responses'] as const)(
    'that are errors of Anthropic and Gemini reach %s clients with the right code',
    async (clientProtocol) => {
      const errors = loadErrors(({ protocol }) => protocol === 'anthropic' || protocol === 'gemini');
      const differences: unknown[] = [];
      for (const recording of errors) {
        for (const stream of [true, false]) {
          const { code } = await replay(recording, clientProtocol, stream);
          const expected = codeOf(recording);
          if (code !== expected) differences.push({ file: recording.file, stream, expected, code });
        }
      }
      expect(differences).toEqual([]);
      expect(errors.length).toBeGreaterThan(0);
      process.stdout.write(`errors -> ${clientProtocol}: ${errors.length}, differences: 0\n`);
    },
  );
});

/** The code for an error's status, if its body is no more specific. */
const codes: Readonly<Record<number, string>> = {
  400: 'invalid_value',
  401: 'upstream_auth',
  403: 'upstream_auth',
  404: 'upstream_error',
  429: 'upstream_rate_limited',
  500: 'upstream_error',
};

function codeOf({ status, bytes }: Recording): string | undefined {
  const text = bytes.toString('utf8');
  if (/API key not valid|location is not supported/.test(text)) return 'upstream_auth';
  if (status === 404 && /model/i.test(text)) return 'model_not_found';
  const isTooLong = /prompt is too long|token count .* exceeds/.test(text) && status === 400;
  return isTooLong ? 'context_length_exceeded' : codes[status];
}

/** A usage without input, or without output for a text, counts as missing: some recordings have zeros. */
function knownUsage({ usage, text }: Reading): Reading['usage'] {
  const [input, output] = usage ?? [0, 0];
  return input > 0 && (output > 0 || text === '') ? usage : null;
}

/**
 * The usage that the gateway counted itself, as far as a recording predicts it: five tokens for the question, and some
 * for the text. Recorded thoughts are counted, too, so that there may be output without text.
 */
function countedUsage({ text }: Reading, seen: Reading['usage']): Reading['usage'] {
  const output = seen?.[1] ?? 0;
  return [5, text === '' || output > 0 ? output : 1];
}

/**
 * Plays a recording on the upstream and reads the client's answer. The input is as long as the recorded one may have
 * been: a count far above the sent text would be implausible.
 */
async function replay(
  recording: Recording,
  clientProtocol: 'chat' | 'responses',
  stream: boolean,
  inputTokens = 1,
) {
  const { upstream, gateway } = stages[recording.protocol];
  upstream.play((response) => {
    const { status, contentType, bytes } = recording;
    response.writeHead(status, contentType === '' ? {} : { 'content-type': contentType });
    response.end(bytes);
  });
  return readAnswer(gateway, clientProtocol, stream, 'x'.repeat(Math.max(1, inputTokens)));
}
