import { describe, expect, test } from 'vitest';
import { readResponsesRequest } from '../../../src/protocol/responses/read-request.ts';
import { defaultCompatibility } from '../../../src/protocol/contract/compatibility.ts';
import { isRefusal } from '../../../src/shared/errors.ts';

const read = (more: Record<string, unknown>) =>
  readResponsesRequest({ model: 'm', input: 'hi', ...more }, defaultCompatibility);

/** The texts read from an input, or the code and the path of the fault. */
function readInput(input: unknown): unknown {
  const request = readResponsesRequest({ model: 'm', input }, defaultCompatibility);
  if (isRefusal(request)) return `${request.code} ${request.param}`;
  return request.turns.map(({ role, text }) => `${role}: ${text}`);
}

describe('a Responses request', () => {
  test('needs only a model and an input', () => {
    expect(read({})).toEqual({
      model: 'm',
      turns: [{ role: 'user', text: 'hi' }],
      stream: false,
      includeUsage: true,
      shownCharge: { usageCost: false, chargeComment: false },
      maxOutputTokens: null,
      stop: [],
      promptCacheKey: null,
      responses: {
        instructions: null,
        maxOutputTokens: null,
        metadata: {},
        user: null,
        safetyIdentifier: null,
        promptCacheKey: null,
        endsWithDone: false,
      },
      stripped: [],
    });
  });

  test('puts its instructions first, and keeps the fields that the answer repeats', () => {
    expect(
      read({ instructions: 'be brief', max_output_tokens: 9, stream: true, temperature: 1 }),
    ).toMatchObject({
      turns: [
        { role: 'system', text: 'be brief' },
        { role: 'user', text: 'hi' },
      ],
      stream: true,
      maxOutputTokens: 9,
      responses: { instructions: 'be brief', maxOutputTokens: 9 },
      stripped: ['temperature'],
    });
  });

  test.each<[unknown, string]>([
    [undefined, 'missing_required_parameter input'],
    [null, 'invalid_type input'],
    [7, 'invalid_type input'],
    [{}, 'invalid_type input'],
    ['', 'empty_array input'],
    [[], 'empty_array input'],
    [['x'], 'invalid_type input[0]'],
    [[null], 'invalid_type input[0]'],
  ])('with %j as its input is refused: %s', (input, expected) => {
    expect(readInput(input)).toBe(expected);
  });
});

describe('an input item', () => {
  test('may be a message of one of four roles, in either form', () => {
    expect(
      readInput([
        { role: 'developer', content: 'a' },
        { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'b' }] },
        { type: null, role: 'user', content: 'c', phase: null },
        { role: 'assistant', content: [{ type: 'text', text: 'd' }] },
      ]),
    ).toEqual(['system: a', 'system: b', 'user: c', 'assistant: d']);
  });

  test('may be an output message replayed unchanged', () => {
    const replayed = {
      id: 'msg_1',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        { type: 'output_text', text: 'a', annotations: [], logprobs: [] },
        { type: 'refusal', refusal: 'b' },
      ],
    };
    expect(readInput([replayed])).toEqual(['assistant: ab']);
  });

  test.each<[string, unknown, string]>([
    [
      'a message without a role',
      { type: 'message', content: 'x' },
      'missing_required_parameter input[1].role',
    ],
    ['a message without content', { role: 'user' }, 'missing_required_parameter input[1].content'],
    ['an empty object', {}, 'missing_required_parameter input[1].role'],
    ['a tool’s message', { role: 'tool', content: 'x' }, 'unsupported_value input[1].role'],
    ['a message of an unknown role', { role: 'wizard', content: 'x' }, 'invalid_value input[1].role'],
    ['a number as a type', { type: 7, role: 'user', content: 'x' }, 'invalid_type input[1].type'],
    ['a function call', { type: 'function_call', name: 'f' }, 'unsupported_value input[1].type'],
    [
      'the output of a function call',
      { type: 'function_call_output', output: 'x' },
      'unsupported_value input[1].type',
    ],
    ['a compaction', { type: 'compaction' }, 'unsupported_value input[1].type'],
    ['a reference', { type: 'item_reference', id: 'msg_1' }, 'unsupported_value input[1]'],
    ['a reference without its type', { id: 'msg_1' }, 'unsupported_value input[1]'],
    ['a reference with a null type', { type: null, id: 'msg_1' }, 'unsupported_value input[1]'],
    [
      'a picture',
      { role: 'user', content: [{ type: 'input_image', image_url: 'data:,' }] },
      'unsupported_value input[1].content[0].type',
    ],
    [
      'a file after text',
      { role: 'user', content: [{ type: 'input_text', text: 'x' }, { type: 'input_file' }] },
      'unsupported_value input[1].content[1].type',
    ],
    ['a message without parts', { role: 'user', content: [] }, 'empty_array input[1].content'],
  ])('is refused if it is %s', (_name, item, expected) => {
    expect(readInput([{ role: 'user', content: 'x' }, item])).toBe(expected);
  });

  test('that is a reference is refused with advice for SDKs', () => {
    const refusal = read({ input: [{ type: 'item_reference', id: 'msg_1' }] });
    expect(refusal).toMatchObject({ message: expect.stringContaining('openai.store') as string });
  });
});

describe('the include field', () => {
  test.each([
    [[], null],
    [['reasoning.encrypted_content', 'file_search_call.results', 'web_search_call.action.sources'], null],
    [['message.output_text.logprobs'], 'unsupported_value include'],
    [['reasoning.encrypted_content', 'everything'], 'invalid_value include[1]'],
    [[7], 'invalid_type include[0]'],
  ])('with %j has the fault %s', (include, fault) => {
    const request = read({ include });
    expect(isRefusal(request) ? `${request.code} ${request.param}` : null).toBe(fault);
  });
});

describe('the text field', () => {
  test.each([
    [{}, null],
    [{ verbosity: 'low' }, null],
    [{ format: { type: 'text' } }, null],
    [{ format: { type: 'json_schema', schema: {} } }, 'unsupported_value text.format.type'],
    [{ verbosity: 'huge' }, 'invalid_value text.verbosity'],
  ])('with %j has the fault %s', (text, fault) => {
    const request = read({ text });
    expect(isRefusal(request) ? `${request.code} ${request.param}` : null).toBe(fault);
  });
});
