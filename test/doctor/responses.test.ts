import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createResponsesStreamWriter,
  createResponsesResultWriter,
} from '../../src/protocol/responses/write-answer.ts';
import { identity, noExtras, plainUsage } from '../support/answers.ts';
import { checkNamed, examineUrl, findings, playProvider, sendEvents, wholeBody } from '../support/examine.ts';
import { cut, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

/** The events of our own answer, which are the model of a well-behaved one. */
const writer = createResponsesStreamWriter(identity, noExtras);
const finished = { kind: 'finished', reason: 'stop', rawReason: 'stop', usage: plainUsage } as const;
const good = writer.delta('Hi') + writer.delta(' there') + writer.finish(finished, 1_800_000_001, null);
const events = good.split('\n\n').map((event) => `${event}\n\n`);
const failing = createResponsesStreamWriter(identity, noExtras);
const opened = failing.delta('Hi');
const error = { message: 'CUDA out of memory', type: 'server_error', param: null, code: null };
const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const failed = event('response.failed', { response: { status: 'failed', error } });

const bodyWriter = createResponsesResultWriter(identity, noExtras);
const body = bodyWriter.delta('Hi there') + bodyWriter.finish(finished, 1_800_000_001, null);

/** Examines a provider of both protocols with this Responses stream. */
async function examineResponses(stream: string, whole = body) {
  playProvider(upstream, {
    elsewhere: (response, path, asked) => {
      if (path !== '/v1/responses') return sendJson(response, 404, '{}');
      if (asked.stream === true) sendEvents(response, stream);
      else sendJson(response, 200, whole);
    },
  });
  return examineUrl(upstream.url, { triesResponses: true });
}

describe('the Responses API is tested beside Chat Completions', () => {
  test('with no finding for answers like our own, [DONE] or not', async () => {
    expect(findings(await examineResponses(good))).toEqual([]);
    const report = await examineResponses(`${good}data: [DONE]\n\n`);
    expect(findings(report)).toEqual([]);
    expect(report.checks.map(({ id }) => id)).toContain('responses.usage');
  });

  test('and skipped where it is missing', async () => {
    playProvider(upstream);
    const report = await examineUrl(upstream.url, { triesResponses: true });
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'responses.stream')).toMatchObject({
      status: 'skipped',
      detail: 'there is no Responses API at this URL (status 404)',
    });
  });

  test.each<[string, number, string, RegExp]>([
    [
      'an error under status 200',
      200,
      '{"error":"Unexpected endpoint or method. (POST /v1/responses)"}',
      /status 200 with another body/,
    ],
    ['a Chat Completions answer', 200, wholeBody(), /status 200 with another body/],
    ['status 400', 400, '{"error":{"message":"no"}}', /status 400/],
    ['status 500', 500, 'oops', /status 500/],
  ])('and skipped at a server that answers unknown paths with %s', async (_name, status, answer, detail) => {
    playProvider(upstream, { elsewhere: (response) => sendJson(response, status, answer) });
    upstream.seen.splice(0);
    const report = await examineUrl(upstream.url, { triesResponses: true });
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'responses.stream').status).toBe('skipped');
    expect(checkNamed(report, 'responses.stream').detail).toMatch(detail);
    expect(upstream.seen.at(-1)?.path).toBe('/v1/responses');
    expect(upstream.seen.filter(({ path }) => path === '/v1/responses')).toHaveLength(1);
    const named = await examineUrl(upstream.url, { upstream: { dialects: ['chat', 'responses'] } });
    expect(named.status).toBe('fault');
  });

  test('and skipped at a server that does not answer it at all', async () => {
    playProvider(upstream, { elsewhere: (response) => cut(response, 'rst') });
    const report = await examineUrl(upstream.url, { triesResponses: true });
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'responses.stream').detail).toMatch(/no answer/);
  });

  test('but examined if its only event is an error', async () => {
    const report = await examineResponses(event('error', { error }));
    expect(checkNamed(report, 'responses.stream.error_in_answer').status).toBe('fault');
  });

  test('and skipped at the built-in demo, which has Chat Completions only', async () => {
    const report = await examineUrl('demo:', { triesResponses: true });
    expect(findings(report)).toEqual([]);
    expect(report.checks.map(({ id }) => id).join(' ')).not.toMatch(/responses/);
  });

  test('only if the config names it', async () => {
    playProvider(upstream);
    upstream.seen.splice(0);
    await examineUrl(upstream.url);
    expect(upstream.seen.map(({ path }) => path)).not.toContain('/v1/responses');
    await examineUrl(upstream.url, { upstream: { dialects: ['chat', 'responses'] } });
    expect(upstream.seen.map(({ path }) => path)).toContain('/v1/responses');
  });
});

describe('a fault of a Responses stream is named', () => {
  test.each<[string, string, string]>([
    ['response.failed alone', opened + failed, 'error_in_answer'],
    ['a flat error', opened + event('error', { ...error, type: 'error' }), 'error_in_answer'],
    ['a bare error', opened + event('error', error), 'error_in_answer'],
    ['a nested error', opened + event('error', { error }), 'error_in_answer'],
    ['an error, then response.failed', opened + event('error', { error }) + failed, 'error_in_answer'],
    ['no terminal event', events.slice(0, -2).join(''), 'cut_off'],
    [
      'a terminal event without its status',
      opened + event('response.incomplete', { response: {} }),
      'error_in_answer',
    ],
    [
      'a text with more than its deltas',
      good.replaceAll('"text":"Hi there"', '"text":"Ho there, all"'),
      'invalid',
    ],
  ])('%s', async (_name, stream, rule) => {
    const report = await examineResponses(stream);
    expect(report.status).toBe('fault');
    expect(checkNamed(report, `responses.stream.${rule}`).status).toBe('fault');
    expect(checkNamed(report, 'chat.stream').status).toBe('ok');
  });

  test('a connection that breaks', async () => {
    playProvider(upstream, {
      elsewhere: (response, _path, asked) => {
        if (asked.stream !== true) return sendJson(response, 200, body);
        sendStream(response, [opened]);
        setTimeout(() => cut(response, 'rst'), 20);
      },
    });
    const report = await examineUrl(upstream.url, { triesResponses: true });
    expect(checkNamed(report, 'responses.stream.broken').status).toBe('fault');
  });

  test.each<[string, string, string]>([
    [
      'a gap in the sequence numbers',
      good.replace('"sequence_number":5', '"sequence_number":6'),
      'sequence_numbers',
    ],
    [
      'no response.created',
      events
        .slice(1)
        .join('')
        .replaceAll(/"sequence_number":(\d+)/g, (_all, n) => `"sequence_number":${Number(n) - 1}`),
      'first_event',
    ],
    ['an id that changes', good.replace('"item_id":"msg_', '"item_id":"other_'), 'changing_id'],
    [
      'event lines that are wrong',
      good.replace('event: response.in_progress', 'event: message'),
      'event_names',
    ],
    [
      'an item that is not closed',
      good.replaceAll('response.output_item.done', 'response.output_item.other'),
      'unclosed_item',
    ],
    [
      'no text in the last object',
      good.replace(/"output":\[\{[^]*?\],"parallel/, '"output":[],"parallel'),
      'text_differs',
    ],
    [
      'no closing text',
      good.replaceAll('response.output_text.done', 'response.output_text.other'),
      'text_differs',
    ],
    ['an object without its fields', good.replaceAll('"tool_choice":"auto",', ''), 'missing_fields'],
    ['events after the end', good + events[5], 'duplicate_terminal'],
  ])('%s is a warning', async (_name, stream, rule) => {
    const report = await examineResponses(stream);
    expect(checkNamed(report, `responses.stream.${rule}`).status).toBe('warning');
    expect(report.status).toBe('warning');
  });

  test('an answer that was cut within its thoughts has no finding but the missing text', async () => {
    const item = { type: 'reasoning', id: 'rs_1', summary: [] };
    const [created = ''] = events;
    const { response } = JSON.parse(created.slice(created.indexOf('{'))) as { response: object };
    const cutOff = {
      ...response,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [item],
    };
    const thoughts = [
      event('response.created', { sequence_number: 0, response }),
      event('response.output_item.added', { sequence_number: 1, output_index: 0, item }),
      event('response.output_item.done', { sequence_number: 2, output_index: 0, item }),
      event('response.incomplete', { sequence_number: 3, response: cutOff }),
    ];
    const only = (stream: readonly string[]) =>
      examineResponses(stream.join('')).then((report) =>
        findings(report).filter(({ id }) => id.startsWith('responses.stream.')),
      );
    expect(await only(thoughts)).toEqual([]);
    const unclosed = thoughts.map((text) => text.replaceAll('output_item.done', 'output_item.other'));
    expect(await only(unclosed)).toEqual(
      expect.arrayContaining([
        { id: 'responses.stream.unclosed_item', status: 'warning' },
        { id: 'responses.stream.skipped_content', status: 'warning' },
      ]),
    );
  });

  test('a whole answer without its fields is a warning', async () => {
    const report = await examineResponses(good, body.replace('"metadata":{}', '"other":{}'));
    expect(findings(report)).toEqual([{ id: 'responses.whole.missing_fields', status: 'warning' }]);
    expect(checkNamed(report, 'responses.whole.missing_fields').detail).toMatch(/lacks metadata/);
  });
});
