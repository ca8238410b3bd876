import { describe, expect, test } from 'vitest';
import { openStage } from '../../support/stage.ts';
import type { FieldPolicy, Rule } from '../../../src/protocol/contract/rule.ts';
import { registry } from '../../../src/protocol/contract/registry.ts';
import { sayTexts } from '../../support/scripted-upstream.ts';

const { upstream, gateway } = await openStage();
upstream.play(sayTexts(['x']));

const user = { role: 'user', content: 'hi' };

/** Builds a whole request with one more field, for each kind of object. */
const places = {
  chat: (name: string, value: unknown) => ({ model: 'small', messages: [user], [name]: value }),
  responses: (name: string, value: unknown) => ({ model: 'small', input: 'hi', [name]: value }),
  streamOptions: (name: string, value: unknown) => ({
    model: 'small',
    messages: [user],
    stream: true,
    stream_options: { [name]: value },
  }),
  text: (name: string, value: unknown) => ({ model: 'small', input: 'hi', text: { [name]: value } }),
  message: (name: string, value: unknown) => ({ model: 'small', messages: [{ ...user, [name]: value }] }),
  contentPart: (name: string, value: unknown) => ({
    model: 'small',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', [name]: value }] }],
  }),
  responseFormat: (name: string, value: unknown) => ({
    model: 'small',
    messages: [user],
    response_format: { [name]: value },
  }),
  inputMessage: (name: string, value: unknown) => ({ model: 'small', input: [{ ...user, [name]: value }] }),
  inputPart: (name: string, value: unknown) => ({
    model: 'small',
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi', [name]: value }] }],
  }),
  textFormat: (name: string, value: unknown) => ({
    model: 'small',
    input: 'hi',
    text: { format: { [name]: value } },
  }),
  responsesStreamOptions: (name: string, value: unknown) => ({
    model: 'small',
    input: 'hi',
    stream: true,
    stream_options: { [name]: value },
  }),
} as const;

type Kind = keyof typeof places;

const pathPrefix: Readonly<Record<Kind, string>> = {
  chat: '',
  responses: '',
  streamOptions: 'stream_options.',
  text: 'text.',
  message: 'messages[0].',
  contentPart: 'messages[0].content[0].',
  responseFormat: 'response_format.',
  inputMessage: 'input[0].',
  inputPart: 'input[0].content[0].',
  textFormat: 'text.format.',
  responsesStreamOptions: 'stream_options.',
};

/** The kinds of objects in a Responses request. */
const responsesKinds: ReadonlySet<Kind> = new Set([
  'responses',
  'text',
  'textFormat',
  'inputMessage',
  'inputPart',
  'responsesStreamOptions',
]);

/** Values that fit a field better than its type's own samples. */
const fitting: Readonly<Record<string, unknown>> = {
  model: 'small',
  messages: [user],
  'messages[].role': 'user',
  'input[].role': 'user',
  'input[].type': 'message',
  include: [],
  text: {},
  'text.format': {},
  'text.format.type': 'json_object',
  stream_options: {},
  response_format: {},
  'response_format.type': 'json_object',
};

/** Fields that are needed, although another one could stand in for them. */
const needed = new Set(['messages[].content', 'messages[].content[].text', 'input[].content[].text']);

const rows = (Object.keys(places) as Kind[]).flatMap((kind) =>
  registry[kind].rules.map((rule: Rule) => [`${registry[kind].prefix}${rule.name}`, kind, rule] as const),
);

/** Sends a request with this field; returns its answer and the bodies that the upstream got. */
async function send(kind: Kind, name: string, value: unknown) {
  const asked = upstream.seen.length;
  const path = responsesKinds.has(kind) ? 'responses' : 'chat/completions';
  const body = { ...places[kind](name, value), ...(name === 'stream_options' ? { stream: true } : {}) };
  const response = await gateway.post(`/v1/${path}`, body);
  const text = await response.text();
  const { error } = response.ok ? { error: null } : (JSON.parse(text) as { error: Record<string, unknown> });
  return {
    status: response.status,
    stripped: (response.headers.get('x-textgate-stripped') ?? '').split(',').filter((item) => item !== ''),
    upstreamBodies: upstream.seen.slice(asked).map((seen) => seen.body),
    error,
  };
}

const upstreamKeys = new Set(['model', 'messages', 'max_tokens', 'stream', 'stream_options', 'stop']);

function expectPlainUpstreamBody(bodies: readonly string[]): void {
  expect(bodies).toHaveLength(1);
  const sent = JSON.parse(bodies[0] ?? '') as { messages: { role: string; content: string }[] };
  expect(Object.keys(sent).filter((key) => !upstreamKeys.has(key))).toEqual([]);
  for (const message of sent.messages) expect(Object.keys(message)).toEqual(['role', 'content']);
}

function isNeutral(policy: FieldPolicy, value: unknown): boolean {
  return (
    policy.kind === 'refuse' && policy.neutral.some((item) => JSON.stringify(item) === JSON.stringify(value))
  );
}

/** The first sample of a field's type that is not neutral. */
function sampleOf(name: string, { type, policy }: Rule): unknown {
  return fitting[name] ?? type.samples.find((value) => !isNeutral(policy, value));
}

function rowsOf(...kinds: readonly FieldPolicy['kind'][]) {
  return rows.filter(([, , { policy }]) => kinds.includes(policy.kind));
}

describe('a forwarded field', () => {
  test.each(rowsOf('forward'))('%s is used for the request', async (name, kind, rule) => {
    const { status, stripped, upstreamBodies } = await send(kind, rule.name, sampleOf(name, rule));
    expect({ status, named: stripped.includes(name) }).toEqual({ status: 200, named: false });
    expectPlainUpstreamBody(upstreamBodies);
  });
});

describe('a stripped field', () => {
  test.each(rowsOf('strip', 'echo', 'sampling'))(
    '%s is dropped and named in the header',
    async (name, kind, rule) => {
      const { status, stripped, upstreamBodies } = await send(kind, rule.name, sampleOf(name, rule));
      expect({ status, named: stripped.includes(name) }).toEqual({ status: 200, named: true });
      expectPlainUpstreamBody(upstreamBodies);
    },
  );
});

describe('a refused field', () => {
  const withNeutral = rowsOf('refuse').flatMap(([name, kind, rule]) =>
    rule.policy.kind === 'refuse'
      ? rule.policy.neutral.map((neutral) => [name, neutral, kind, rule] as const)
      : [],
  );

  test.each(withNeutral)(
    '%s is dropped if it is %j, and named in the header',
    async (name, neutral, kind, rule) => {
      const { status, stripped, upstreamBodies } = await send(kind, rule.name, neutral);
      expect({ status, named: stripped.includes(name) }).toEqual({ status: 200, named: true });
      expectPlainUpstreamBody(upstreamBodies);
    },
  );

  test.each(rowsOf('refuse', 'misplaced'))(
    '%s is refused with its code, its path and advice',
    async (name, kind, rule) => {
      const { policy } = rule;
      if (policy.kind !== 'refuse' && policy.kind !== 'misplaced') throw new Error('not a refused field');
      const { status, error, upstreamBodies } = await send(kind, rule.name, sampleOf(name, rule));
      const path = pathPrefix[kind] + rule.name;
      const code = policy.kind === 'refuse' ? policy.code : 'unknown_parameter';
      expect({ status, code: error?.['code'], param: error?.['param'] }).toEqual({
        status: 400,
        code,
        param: path,
      });
      expect(error?.['message']).toContain(policy.advice);
      expect(upstreamBodies).toEqual([]);
    },
  );
});

describe('any field', () => {
  test.each(rows)('%s may be null if it is optional, as if it were absent', async (name, kind, rule) => {
    const { status, stripped, error } = await send(kind, rule.name, null);
    const isNeeded = (rule.policy.kind === 'forward' && rule.policy.required === true) || needed.has(name);
    const seen = { status, code: error?.['code'], param: error?.['param'], named: stripped.includes(name) };
    expect(seen).toEqual(
      isNeeded
        ? { status: 400, code: 'invalid_type', param: pathPrefix[kind] + rule.name, named: false }
        : { status: 200, code: undefined, param: undefined, named: false },
    );
  });

  test.each(rows.filter(([, , { type, policy }]) => type.wrong !== undefined && policy.kind !== 'misplaced'))(
    '%s is refused with the wrong type',
    async (_name, kind, rule) => {
      const { status, error, upstreamBodies } = await send(kind, rule.name, rule.type.wrong);
      expect(status).toBe(400);
      expect(error).toMatchObject({ code: 'invalid_type', param: pathPrefix[kind] + rule.name });
      expect(upstreamBodies).toEqual([]);
    },
  );
});

describe('a number', () => {
  const int64 = 2 ** 63;
  const largest = Number.MAX_SAFE_INTEGER;
  test.each<[string, below: number, least: number, most: number, above: number]>([
    ['temperature', -0.1, 0, 2, 2.1],
    ['top_p', -0.1, 0, 1, 1.1],
    ['frequency_penalty', -2.1, -2, 2, 2.1],
    ['top_logprobs', -1, 0, 20, 21],
    ['n', 0, 1, 128, 129],
    ['seed', -int64 - 2_048, -int64, int64, int64 + 2_048],
    ['max_tokens', -2, -1, largest, largest + 1],
    ['top_k', -2, -1, largest, largest + 1],
    ['best_of', 0, 1, largest, largest + 1],
    ['typical_p', -100.1, -100, 100, 100.1],
    ['min_p', -1_000_000.1, -1_000_000, 1_000_000, 1_000_000.1],
  ])('of %s may be at its bounds, and not beyond', async (name, below, least, most, above) => {
    const codeOf = async (value: number) => (await send('chat', name, value)).error?.['code'] ?? '';
    expect(await codeOf(below)).toMatch(/below_min_value$/);
    for (const value of [least, most]) expect(await codeOf(value)).not.toMatch(/_(?:min|max)_value$/);
    expect(await codeOf(above)).toMatch(/above_max_value$/);
  });
});

describe('strict sampling', () => {
  test.each(
    registry.chat.rules
      .filter(({ policy }) => policy.kind === 'sampling')
      .map((rule) => [rule.name, rule] as const),
  )('drops a usual default of %s and refuses any other value', async (name, { type, policy }) => {
    if (policy.kind !== 'sampling') throw new Error('unreachable');
    const { secret } = await gateway.gateway.createKey('strict', { compatibility: { sampling: 'strict' } });
    const headers = { authorization: `Bearer ${secret}` };
    for (const value of policy.defaults) {
      const response = await gateway.post('/v1/chat/completions', places.chat(name, value), { headers });
      expect({ value, status: response.status }).toEqual({ value, status: 200 });
    }
    const refused = await gateway.post('/v1/chat/completions', places.chat(name, type.samples[0]), {
      headers,
    });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: 'unsupported_value', param: name } });
  });
});

describe('an unknown field', () => {
  test('is dropped and named for a key that ignores them; an odd name never becomes a header or a label', async () => {
    const { secret } = await gateway.gateway.createKey('lenient', {
      compatibility: { unknownFields: 'ignore' },
    });
    const odd = {
      model: 'small',
      messages: [user],
      frobnicate: 1,
      'ev\r\nil: 1': 1,
      'schön ☃': 1,
      input: 'x',
    };
    const headers = { authorization: `Bearer ${secret}` };
    const misplaced = await gateway.post('/v1/chat/completions', odd, { headers });
    expect(misplaced.status).toBe(400);
    const { input: _input, ...rest } = odd;
    const response = await gateway.post('/v1/chat/completions', rest, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-textgate-stripped')).toBe('frobnicate,other');
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).toContain('textgate_stripped_parameters_total{parameter="other"} 2');
    expect(metrics).toContain('textgate_rejected_parameters_total{parameter="input"}');
    expect(metrics).not.toContain('frobnicate');
  });
});

describe('the reported fault of several', () => {
  test.each([
    ['{"model":"small","tools":[{}],"messages":[{"role":"wizard","content":"x"}]}', 'tools'],
    ['{"model":"small","messages":[{"role":"wizard","content":"x"}],"tools":[{}]}', 'messages[0].role'],
    [
      '{"messages":[{"content":[{"type":"image_url"}],"role":"wizard"}],"model":7}',
      'messages[0].content[0].type',
    ],
    ['{"temperature":9,"messages":7}', 'temperature'],
    ['{"messages":[]}', 'messages'],
    ['{}', 'model'],
  ])('in %s is the first, at %s', async (body, param) => {
    const response = await gateway.post('/v1/chat/completions', body);
    expect(await response.json()).toMatchObject({ error: { param } });
  });
});
