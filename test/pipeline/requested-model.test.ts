import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { requestedModelOf } from '../../src/pipeline/stage-views.ts';
import type { Stage } from '../../src/pipeline/stages.ts';

/** What is shown of a model's name, for a client with this key. */
function shownOf(model: string, key = 'a-key-of-my-own'): string | null {
  const stage = { stage: 'asked', request: { model } } as Stage;
  return requestedModelOf(stage, `Bearer ${key}`);
}

describe('the name of a requested model', () => {
  test.each([
    'smal',
    'gpt-4o-2024-08-06',
    'meta-llama/Llama-3.1-8B-Instruct',
    'hf.co/unsloth/Qwen2.5-Coder-32B-Instruct-GGUF',
    'models/llama-3.gguf',
    'qwen2.5-coder:7b',
  ])('is shown if it is no key: %s', (model) => {
    expect(shownOf(model)).toBe(model);
  });

  test.each([
    ['a key of a provider', 'sk-proj-abcdef123456'],
    ['random bytes in base 16', randomBytes(32).toString('hex')],
    ['a UUID', randomUUID()],
    ['random letters with two slashes', 'aB3dE5gH7jK9mN1pQ3/sT5vW7yZ9bD1fG3hJ5/kL7nP9rS1uV3xY5zA7'],
    ['random letters behind an address', 'me@x:QWxhZGRpbjpvcGVuIHNlc2FtZQ9'],
    ['random letters at a host', 'api.foo.com/QWxhZGRpbjpvcGVuIHNlc2FtZQ9'],
  ])('is hidden if it is %s', (_what, model) => {
    expect(shownOf(model)).toBe('[key]');
    expect(shownOf(`${'my key is '.repeat(30)}${model}`)).toBe('[key]');
  });

  test.each([
    'correct-horse',
    'x correct-horse y',
    'correct-horse-battery',
    'Authorization: Bearer correct-horse-battery',
  ])('is hidden if it holds the key of the request, or a long part of it: %s', (model) => {
    expect(shownOf(model, model.includes('battery') ? 'correct-horse-battery-staple' : 'correct-horse')).toBe(
      '[key]',
    );
    expect(shownOf(model, 'another-key')).toBe(model);
  });

  test('is hidden if it is the key of the request, however short that is', () => {
    expect(shownOf('abc', 'abc')).toBe('[key]');
  });

  test.each(['sk-proj-abcdef123456', 'a-key-of-my-own'])(
    'is shown if it is on offer, whatever it is: %s',
    (id) => {
      const work = { kind: 'text', request: { model: id }, model: { id } };
      const stages = ['routed', 'dispatched', 'recorded'].map((stage) => ({ stage, work }) as Stage);
      expect(stages.map((stage) => requestedModelOf(stage, 'Bearer a-key-of-my-own'))).toEqual([id, id, id]);
    },
  );
});
