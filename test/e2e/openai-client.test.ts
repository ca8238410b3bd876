import { describe, expect, test } from 'vitest';
import { openStage } from '../support/stage.ts';
import { sayTexts } from '../support/scripted-upstream.ts';

const texts = ['Grüße, ', '"Welt" ', '\\ 🌍\n', 'end.'];
const whole = texts.join('');
const messages = [
  { role: 'system' as const, content: 'Be brief.' },
  { role: 'user' as const, content: 'Say hello' },
];

const { upstream, gateway } = await openStage();

describe('the official client', () => {
  test('gets a whole chat completion', async () => {
    upstream.play(sayTexts(texts));
    const completion = await gateway.client.chat.completions.create({ model: 'small', messages });
    expect(completion.choices[0]?.message.content).toBe(whole);
    expect(completion.choices[0]?.finish_reason).toBe('stop');
    expect(completion.model).toBe('small');
    expect(completion.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
    expect(completion._request_id).toMatch(/^req_[0-9a-f]{32}$/);
  });

  test('gets a chat stream with usage at the end, when it asks for that', async () => {
    upstream.play(sayTexts(texts));
    const stream = await gateway.client.chat.completions.create({
      model: 'small',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(whole);
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant');
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 18 } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === undefined)).toBe(true);
  });

  test('gets no usage chunk unless it asks for one, although the gateway asked the upstream', async () => {
    upstream.play(sayTexts(texts));
    const runner = gateway.client.chat.completions.stream({ model: 'small', messages });
    const completion = await runner.finalChatCompletion();
    expect(completion.choices[0]?.message.content).toBe(whole);
    expect(completion.usage).toBeUndefined();
    const sent = JSON.parse(upstream.seen.at(-1)?.body ?? '{}') as Record<string, unknown>;
    expect(sent['stream_options']).toEqual({ include_usage: true });
  });

  test('gets a whole response', async () => {
    upstream.play(sayTexts(texts));
    const response = await gateway.client.responses.create({
      model: 'small',
      instructions: 'Be brief.',
      input: 'Say hello',
    });
    expect(response.output_text).toBe(whole);
    expect(response.status).toBe('completed');
    expect(response.instructions).toBe('Be brief.');
    expect(response.usage).toMatchObject({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
  });

  test('gets a response stream in full order, with constant ids', async () => {
    upstream.play(sayTexts(texts));
    const runner = gateway.client.responses.stream({ model: 'small', input: messages });
    const events = await Array.fromAsync(runner);
    const response = await runner.finalResponse();
    expect(response.output_text).toBe(whole);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
    expect(
      events.filter(({ type }) => type !== 'response.output_text.delta').map(({ type }) => type),
    ).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
  });

  test('finds the request’s echoed settings in a response from its first event on', async () => {
    upstream.play(sayTexts(texts));
    const repeated = {
      metadata: { ticket: '7' },
      user: 'u-1',
      safety_identifier: 's-1',
      prompt_cache_key: 'p-1',
      instructions: 'Be brief.',
      max_output_tokens: 99,
    };
    const runner = gateway.client.responses.stream({ model: 'small', input: 'x', ...repeated });
    const events = await Array.fromAsync(runner);
    const responses = events.flatMap((event) => ('response' in event ? [event.response] : []));
    expect(responses).toHaveLength(3);
    for (const response of responses) expect(response).toMatchObject(repeated);
    const sent = JSON.parse(upstream.seen.at(-1)?.body ?? '{}') as object;
    expect(Object.keys(sent)).toEqual(['model', 'messages', 'max_tokens', 'stream', 'stream_options']);
  });

  test('gets [DONE] at the end of a response stream when its key is set so', async () => {
    upstream.play(sayTexts(texts));
    const { secret } = await gateway.gateway.createKey('old', { compatibility: { responsesDone: true } });
    const body = { model: 'small', input: 'x', stream: true };
    const headers = { authorization: `Bearer ${secret}` };
    const text = await (await gateway.post('/v1/responses', body, { headers })).text();
    expect(text).toMatch(/event: response.completed\ndata: .*\n\ndata: \[DONE\]\n\n$/);
    expect(await (await gateway.post('/v1/responses', body)).text()).not.toContain('[DONE]');
  });

  test('gets an answer cut by its cap as "length" in chat, and as "incomplete" in responses', async () => {
    upstream.play(sayTexts(texts, 'length'));
    const chat = await gateway.client.chat.completions.create({ model: 'small', messages, max_tokens: 4 });
    expect(chat.choices[0]?.finish_reason).toBe('length');
    const runner = gateway.client.responses.stream({ model: 'small', input: 'x', max_output_tokens: 4 });
    const response = await runner.finalResponse();
    expect(response.status).toBe('incomplete');
    expect(response.incomplete_details).toEqual({ reason: 'max_output_tokens' });
    expect(response.max_output_tokens).toBe(4);
  });

  test('lists the models and retrieves one', async () => {
    const listed = await Array.fromAsync(await gateway.client.models.list());
    expect(listed.map(({ id }) => id)).toEqual(['small']);
    expect(await gateway.client.models.retrieve('small')).toMatchObject({ id: 'small', object: 'model' });
    await expect(gateway.client.models.retrieve('a/b')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
  });

  test('has its text sent to the upstream unchanged, with the upstream’s own key and model name', async () => {
    upstream.play(sayTexts(texts));
    const odd = 'tab\t nul\u0000 astral 𝒳 "quote" \\ line\u2028';
    await gateway.client.chat.completions.create({
      model: 'small',
      messages: [{ role: 'user', content: odd }],
    });
    const { body, headers } = upstream.seen.at(-1) ?? { body: '{}', headers: {} };
    expect(JSON.parse(body)).toEqual({
      model: 'tiny',
      messages: [{ role: 'user', content: odd }],
      stream: false,
    });
    expect(headers.authorization).toBe('Bearer sk-upstream-secret');
  });
});
