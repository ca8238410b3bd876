import { expect, test } from 'vitest';
import { createSanitiser } from '../../../../src/protocol/upstream/words/sanitise.ts';

const sanitise = (message: string, prompt: string): string | null =>
  createSanitiser({
    turns: [{ role: 'user', text: prompt }],
    clientKey: 'Bearer old-client/key!',
    upstream: () => ({ keys: ['odd Key!77', 'my-own-local-key-1'], hosts: ['vllm:8000', 'inference.mine'] }),
    names: ['gpt-4o-2024-08-06', 'accounts/fireworks/models/llama-v3', '10.0.0.9'],
  })(message);

/** Texts that make a careless pattern try every way to divide them. Each is as long as is read of a message. */
const hostile = [
  'a',
  'A',
  'x',
  'aA1-',
  'a.',
  'a/',
  ':',
  '://',
  '"\'',
  'key: ',
  '\\',
  '&#',
  '@',
  '%',
  'sk-',
  ' ',
  '1',
  '***',
  '=',
  'id ',
  "'a ",
  '%25',
  '%c3',
  String.raw`\xe2`,
  String.raw`\\u`,
  '&amp;',
  '&amp',
  'input_value=',
  "'...",
  '&#39;…',
].map((part) => part.repeat(4_096).slice(0, 4_095));

test.each(hostile.map((text) => [text.slice(0, 8), text]))(
  'takes time in proportion to the text and the request, even for %j repeated',
  (_name, text) => {
    const long = text.repeat(500);
    // A search that compares each place of the message with each of the request would not end within the test's limit.
    expect(sanitise(`${text}!`, long)?.length ?? 0).toBeLessThanOrEqual(400);
  },
);

test('a message that has no part of such a request is shown as it is', () => {
  for (const text of hostile) expect(sanitise('no', text.repeat(20))).toBe('no');
});
