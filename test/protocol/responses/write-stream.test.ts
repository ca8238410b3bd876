import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createResponsesStreamWriter } from '../../../src/protocol/responses/write-answer.ts';
import type { FinishReason } from '../../../src/protocol/text.ts';
import { refuse } from '../../../src/shared/errors.ts';
import { parseFrames } from '../../support/parse-frames.ts';
import { propertyRun } from '../../support/property-run.ts';
import { requiredResponseKeys } from '../../support/required-response-keys.ts';
import { allExtras as extras, detailedUsage as usage, identity } from '../../support/answers.ts';

const refusal = refuse('upstream_truncated', 'cut off');

type EventData = Record<string, unknown>;

/** The events of a text, checked for the rules of every stream: names, sequence numbers and ids. */
function readEvents(text: string): EventData[] {
  return parseFrames(text).map(({ name, data }, index) => {
    if (data === '[DONE]') throw new Error('these streams have no [DONE]');
    expect(data).toMatchObject({ type: name, sequence_number: index });
    if ('item_id' in data)
      expect(data).toMatchObject({ item_id: 'msg_0123456789abcdef', output_index: 0, content_index: 0 });
    if ('item' in data) expect(data).toMatchObject({ output_index: 0, item: { id: 'msg_0123456789abcdef' } });
    if ('response' in data) {
      expect(data).toMatchObject({ response: { id: 'resp_0123456789abcdef', created_at: 1_800_000_000 } });
      expect(Object.keys(data['response'] as object)).toEqual(
        expect.arrayContaining([...requiredResponseKeys]),
      );
    }
    return data;
  });
}

function write(texts: readonly string[], reason: FinishReason | null): EventData[] {
  const writer = createResponsesStreamWriter(identity, extras);
  const said = texts.map((text) => writer.delta(text)).join('');
  if (reason === null) return readEvents(said + writer.fail(refusal, null));
  const finish = { kind: 'finished', reason, rawReason: reason, usage } as const;
  return readEvents(said + writer.finish(finish, 1_800_000_007, null));
}
const types = (events: readonly EventData[]) => events.map(({ type }) => type);

const openingTypes = [
  'response.created',
  'response.in_progress',
  'response.output_item.added',
  'response.content_part.added',
];
const closingTypes = ['response.output_text.done', 'response.content_part.done', 'response.output_item.done'];

describe('a response stream', () => {
  test('opens, sends its text, closes and ends, each event once and in order', () => {
    const events = write(['a ', 'b'], 'stop');
    expect(types(events)).toEqual([
      ...openingTypes,
      'response.output_text.delta',
      'response.output_text.delta',
      ...closingTypes,
      'response.completed',
    ]);
    const part = { type: 'output_text', text: 'a b', annotations: [], logprobs: [] };
    const item = { type: 'message', role: 'assistant' };
    const running = { status: 'in_progress', output: [], usage: null, completed_at: null, error: null };
    expect(events).toMatchObject([
      { response: running },
      { response: running },
      { item: { ...item, status: 'in_progress', content: [] } },
      { part: { ...part, text: '' } },
      { delta: 'a ', logprobs: [], item_id: 'msg_0123456789abcdef' },
      { delta: 'b', logprobs: [], item_id: 'msg_0123456789abcdef' },
      { text: 'a b', logprobs: [], item_id: 'msg_0123456789abcdef' },
      { part, item_id: 'msg_0123456789abcdef' },
      { item: { ...item, status: 'completed', content: [part] } },
      {
        response: {
          status: 'completed',
          completed_at: 1_800_000_007,
          incomplete_details: null,
          output: [{ ...item, status: 'completed', content: [part] }],
          usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
        },
      },
    ]);
  });

  test('opens and closes even without text', () => {
    expect(types(write([], 'stop'))).toEqual([...openingTypes, ...closingTypes, 'response.completed']);
  });

  test.each<[FinishReason, string]>([
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ])('that was cut short by %s is incomplete, not completed', (reason, told) => {
    const events = write(['a'], reason);
    expect(types(events)).not.toContain('response.completed');
    expect(events.at(-2)).toMatchObject({ item: { status: 'incomplete' } });
    expect(events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: {
        status: 'incomplete',
        incomplete_details: { reason: told },
        output: [{ status: 'incomplete' }],
        usage: { total_tokens: 18 },
      },
    });
  });

  test('repeats its request and the client’s model name in every response object', () => {
    const responses = write(['a'], 'stop').flatMap((event) => event['response'] ?? []);
    expect(responses).toHaveLength(3);
    for (const response of responses)
      expect(response).toMatchObject({ model: 'a/"b"', instructions: 'be brief', max_output_tokens: 9 });
  });

  test('carries any text unchanged: in its deltas, and whole at each close', () => {
    const texts = fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }), { maxLength: 5 });
    fc.assert(
      fc.property(texts, (said) => {
        const events = write(said, 'stop');
        const whole = said.join('');
        expect(events.flatMap(({ delta }) => delta ?? [])).toEqual(said);
        expect(events.at(-4)).toMatchObject({ text: whole });
        expect(events.at(-3)).toMatchObject({ part: { text: whole } });
        expect(events.at(-1)).toMatchObject({ response: { output: [{ content: [{ text: whole }] }] } });
      }),
      propertyRun(100),
    );
  });

  test('has the event stream content type, and sends each text at once', () => {
    const writer = createResponsesStreamWriter(identity, extras);
    expect(writer.contentType).toMatch(/^text\/event-stream\b/);
    expect(parseFrames(writer.delta('a'))).toHaveLength(5);
    expect(parseFrames(writer.delta('b'))).toHaveLength(1);
  });
});

describe('a response stream that fails', () => {
  test.each<[string, string[], string[]]>([
    ['after some text', ['a'], [...openingTypes, 'response.output_text.delta']],
    ['before anything was sent', [], []],
  ])('%s sends error, then response.failed', (_name, texts, before) => {
    const events = write(texts, null);
    expect(types(events)).toEqual([...before, 'error', 'response.failed']);
    const told = { message: 'cut off', param: null, code: 'upstream_truncated' };
    expect(events.at(-2)).toMatchObject({ ...told, error: { ...told, type: 'server_error' } });
    expect(events.at(-1)).toMatchObject({
      response: {
        status: 'failed',
        error: { code: 'upstream_truncated', message: 'cut off' },
        completed_at: null,
        incomplete_details: null,
        output: [],
        usage: null,
      },
    });
  });

  test('need not be torn down, since its last event reports the failure', () => {
    expect(createResponsesStreamWriter(identity, extras).tearDownOnFailure).toBe(false);
  });
});
