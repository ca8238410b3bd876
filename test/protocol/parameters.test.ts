import { describe, expect, test } from 'vitest';
import { parameters, readParameters } from '../../src/protocol/parameters.ts';
import type { Protocol } from '../../src/protocol/text.ts';
import { isRefusal } from '../../src/shared/errors.ts';

const bodies: Readonly<Record<Protocol, Record<string, unknown>>> = {
  chat: { model: 'm', messages: [{}] },
  responses: { model: 'm', input: 'x' },
};
const protocols: readonly Protocol[] = ['chat', 'responses'];

/** What became of the parameters put on top of a good body: what is left of them, or why they were refused. */
function fate(protocol: Protocol, more: Record<string, unknown>): unknown {
  const read = readParameters(protocol, { ...bodies[protocol], ...more });
  if (isRefusal(read)) return `${read.code} ${read.param}`;
  const kept = Object.keys(more).filter((name) => name in read.values);
  return { kept, stripped: read.stripped };
}
const kept = (name: string) => ({ kept: [name], stripped: [] });
const stripped = (name: string) => ({ kept: [], stripped: [name] });
const absent = { kept: [], stripped: [] };

describe('the registry', () => {
  test('has each name once per protocol', () => {
    for (const protocol of protocols) {
      const names = parameters.filter((row) => row.protocols.includes(protocol)).map(({ name }) => name);
      expect(names).toEqual([...new Set(names)]);
    }
  });

  const rows = parameters.flatMap(({ name, protocols: of, treatment }) =>
    of.map((protocol) => [protocol, name, treatment] as const),
  );

  const isRequired = (treatment: (typeof rows)[number][2]) =>
    treatment.kind === 'forward' && treatment.required === true;

  test.each(rows.filter(([, , treatment]) => !isRequired(treatment)))(
    'treats null on %s’s %s as absent',
    (protocol, name) => {
      expect(readParameters(protocol, { ...bodies[protocol], [name]: null })).toEqual(
        readParameters(protocol, bodies[protocol]),
      );
    },
  );

  test.each(rows.filter(([, , treatment]) => isRequired(treatment)))('misses %s’s %s', (protocol, name) => {
    const { [name]: _gone, ...rest } = bodies[protocol];
    expect(readParameters(protocol, rest)).toMatchObject({
      code: 'missing_required_parameter',
      param: name,
    });
  });
});

describe.each(protocols)('on %s', (protocol) => {
  test.each<[string, unknown, unknown]>([
    ['stream', true, kept('stream')],
    ['stream', 'true', 'invalid_type stream'],
    ['temperature', 0, stripped('temperature')],
    ['temperature', 0.42, stripped('temperature')],
    ['temperature', 2, stripped('temperature')],
    ['temperature', -0.1, 'decimal_below_min_value temperature'],
    ['temperature', 2.1, 'decimal_above_max_value temperature'],
    ['temperature', '1', 'invalid_type temperature'],
    ['temperature', true, 'invalid_type temperature'],
    ['top_p', 1, stripped('top_p')],
    ['top_p', 1.1, 'decimal_above_max_value top_p'],
    ['top_p', -1, 'decimal_below_min_value top_p'],
    ['frequency_penalty', -2, stripped('frequency_penalty')],
    ['frequency_penalty', 2.1, 'decimal_above_max_value frequency_penalty'],
    ['presence_penalty', 2, stripped('presence_penalty')],
    ['presence_penalty', -2.1, 'decimal_below_min_value presence_penalty'],
    ['presence_penalty', [], 'invalid_type presence_penalty'],
    ['tools', [], stripped('tools')],
    ['tools', [{}], 'unsupported_parameter tools'],
    ['tools', {}, 'invalid_type tools'],
    ['tool_choice', 'auto', stripped('tool_choice')],
    ['tool_choice', 'none', stripped('tool_choice')],
    ['tool_choice', 'required', 'unsupported_parameter tool_choice'],
    ['tool_choice', { type: 'function' }, 'unsupported_parameter tool_choice'],
    ['previous_response_id', 'resp_1', 'unsupported_parameter previous_response_id'],
    ['conversation', { id: 'c' }, 'unsupported_parameter conversation'],
    ['model', null, 'invalid_type model'],
    ['temprature', 1, 'unknown_parameter temprature'],
    ['temprature', null, 'unknown_parameter temprature'],
    ['constructor', 1, 'unknown_parameter constructor'],
    ['toString', 1, 'unknown_parameter toString'],
  ])('%s: %j is treated as %j', (name, value, expected) => {
    expect(fate(protocol, { [name]: value })).toEqual(expected);
  });

  test.each([null, undefined, 'x', 7, [], true])('%j is no body', (body) => {
    expect(readParameters(protocol, body)).toMatchObject({ code: 'invalid_type', param: null });
  });
});

describe('a parameter of one protocol', () => {
  test.each<[Protocol, string, unknown, unknown]>([
    ['chat', 'messages', null, 'invalid_type messages'],
    ['chat', 'max_tokens', 1, kept('max_tokens')],
    ['chat', 'max_tokens', 0, 'integer_below_min_value max_tokens'],
    ['chat', 'max_tokens', 1.5, 'invalid_type max_tokens'],
    ['chat', 'max_completion_tokens', -1, 'integer_below_min_value max_completion_tokens'],
    ['chat', 'max_output_tokens', 5, 'unknown_parameter max_output_tokens'],
    ['chat', 'input', 'x', 'unknown_parameter input'],
    ['chat', 'instructions', 'x', 'unknown_parameter instructions'],
    ['chat', 'stream_options', { include_usage: true }, kept('stream_options')],
    ['chat', 'stream_options', [], 'invalid_type stream_options'],
    ['chat', 'functions', [], stripped('functions')],
    ['chat', 'functions', [{}], 'unsupported_parameter functions'],
    ['chat', 'function_call', 'none', stripped('function_call')],
    ['chat', 'function_call', { name: 'f' }, 'unsupported_parameter function_call'],
    ['chat', 'audio', null, absent],
    ['chat', 'audio', {}, 'unsupported_parameter audio'],
    ['chat', 'modalities', ['text'], stripped('modalities')],
    ['chat', 'modalities', ['text', 'audio'], 'unsupported_value modalities'],
    ['chat', 'modalities', [], 'unsupported_value modalities'],
    ['chat', 'modalities', 'text', 'invalid_type modalities'],
    ['responses', 'max_output_tokens', 1, kept('max_output_tokens')],
    ['responses', 'max_output_tokens', 0, 'integer_below_min_value max_output_tokens'],
    ['responses', 'max_tokens', 5, 'unknown_parameter max_tokens'],
    ['responses', 'messages', [], 'unknown_parameter messages'],
    ['responses', 'instructions', 'x', kept('instructions')],
    ['responses', 'instructions', ['x'], 'invalid_type instructions'],
  ])('%s: %s: %j is treated as %j', (protocol, name, value, expected) => {
    expect(fate(protocol, { [name]: value })).toEqual(expected);
  });
});

describe('a refused body', () => {
  test('is told its first fault in document order, and a missing parameter last', () => {
    expect(readParameters('chat', { top_p: 7, temperature: 7 })).toMatchObject({ param: 'top_p' });
    expect(readParameters('chat', { temperature: 7, top_p: 7 })).toMatchObject({ param: 'temperature' });
    expect(readParameters('chat', { messages: [{}] })).toMatchObject({ param: 'model' });
  });

  test('never takes a parameter from an object’s prototype', () => {
    const body = JSON.parse('{"__proto__":{"model":"m","messages":[]}}') as unknown;
    expect(readParameters('chat', body)).toMatchObject({ code: 'unknown_parameter', param: '__proto__' });
    expect(readParameters('chat', Object.create(bodies.chat))).toMatchObject({ param: 'model' });
  });

  test('is not told the whole of a very long name', () => {
    const read = readParameters('chat', { ['x'.repeat(10_000)]: 1 });
    expect(isRefusal(read) && read.param).toBe(`${'x'.repeat(64)}…`);
    expect(JSON.stringify(read).length).toBeLessThan(400);
  });
});

test('what is stripped is named in document order', () => {
  const more = { top_p: 1, tools: [], temperature: 0, stream: false, presence_penalty: null };
  expect(fate('responses', more)).toEqual({ kept: ['stream'], stripped: ['top_p', 'tools', 'temperature'] });
});
