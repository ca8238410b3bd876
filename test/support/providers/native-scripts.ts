import { asked, pieces, refusals, sse, thought, whole } from './provider-script.ts';
import type { ProviderScript } from './provider-script.ts';

/** Anthropic sends an `event:` line, repeats the name in the data, and may add trailing spaces. */
const event = (type: string, fields: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}     \n\n`;
const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' };
const counted = { input_tokens: 9, cache_read_input_tokens: 6, cache_creation_input_tokens: 4 };
const opening = [
  event('message_start', {
    message: { ...message, content: [], stop_reason: null, usage: { ...counted, output_tokens: 2 } },
  }),
  event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
  event('ping'),
  event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: thought } }),
  event('content_block_delta', { index: 0, delta: { type: 'signature_delta', signature: 'EuYD' } }),
  event('content_block_stop', { index: 0 }),
  event('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
];
const say = (text: string): string =>
  event('content_block_delta', { index: 1, delta: { type: 'text_delta', text } });
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

export const anthropic: ProviderScript = {
  path: () => '/v1/messages',
  request: (stream) => ({
    model: asked.model,
    max_tokens: asked.cap,
    system: asked.system,
    messages: [{ role: 'user', content: asked.user }],
    stream,
  }),
  headers: { 'x-api-key': 'key of ANTHROPIC_API_KEY', 'anthropic-version': '2023-06-01' },
  body: JSON.stringify({
    ...message,
    content: [
      { type: 'thinking', thinking: thought, signature: 'EuYD' },
      { type: 'text', text: whole },
    ],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { ...counted, output_tokens: 30 },
  }),
  stream: [
    ...opening,
    ...pieces.map(say),
    event('content_block_stop', { index: 1 }),
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 30 } }),
    event('message_stop'),
  ].join(''),
  usage: [19, 6, 30, 0],
  faults: [
    {
      name: 'an overload inside a stream',
      stream: true,
      status: 200,
      bytes: [...opening, say(pieces[0]), `event: error\ndata: ${JSON.stringify(overloaded)}\n\n`].join(''),
      text: pieces[0],
      code: 'overloaded',
    },
    ...refusals('an overload', 529, overloaded, 'overloaded'),
  ],
};

const usageMetadata = {
  promptTokenCount: 25,
  cachedContentTokenCount: 20,
  candidatesTokenCount: 5,
  thoughtsTokenCount: 66,
  totalTokenCount: 96,
};
const candidate = (parts: readonly object[], extra: object = {}): object => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...extra }],
  usageMetadata: { promptTokenCount: 25, totalTokenCount: 25 },
  modelVersion: 'm',
});

export const gemini: ProviderScript = {
  path: (stream) =>
    `/v1beta/models/their%2Fmodel:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  request: () => ({
    systemInstruction: { parts: [{ text: asked.system }] },
    contents: [{ role: 'user', parts: [{ text: asked.user }] }],
    generationConfig: { maxOutputTokens: asked.cap },
  }),
  headers: { 'x-goog-api-key': 'key of GEMINI_API_KEY' },
  body: JSON.stringify({
    ...candidate([{ text: thought, thought: true }, { text: whole }], { finishReason: 'STOP' }),
    usageMetadata,
  }),
  stream: sse(
    candidate([{ text: thought, thought: true }]),
    candidate([{ text: pieces[0] }], { finishReason: 'STOP' }),
    candidate([{ text: pieces[1] }]),
    {
      ...candidate([{ text: pieces[2] }, { text: '', thoughtSignature: 'Cg4' }], { finishReason: 'STOP' }),
      usageMetadata,
    },
  ),
  usage: [25, 20, 71, 66],
  faults: refusals(
    'a key that is wrong',
    400,
    { error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] } },
    'upstream_auth',
  ),
};
