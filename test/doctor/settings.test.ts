import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  checkNamed,
  examineUrl,
  findings,
  notFound,
  playProvider,
  sendEvents,
  wholeBody,
} from '../support/examine.ts';
import { chatFrames, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { openaiResponses } from '../support/providers/openai-scripts.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

const refusal = JSON.stringify({
  error: { message: 'Unsupported parameter', type: 'x', param: null, code: 'y' },
});
const stream = chatFrames(['Hi', ' there']).join('');

describe('a setting of the config is found by trying it', () => {
  test('maxTokensField, and all later checks use it', async () => {
    playProvider(upstream, {
      whole: (response, { max_tokens: cap }) =>
        cap === undefined ? sendJson(response, 200, wholeBody()) : sendJson(response, 400, refusal),
      stream: (response, { max_tokens: cap }) =>
        cap === undefined ? sendEvents(response, stream) : sendJson(response, 400, refusal),
    });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.whole', status: 'fault' }]);
    expect(checkNamed(report, 'chat.whole')).toMatchObject({
      detail: 'refused with status 400; answered with maxTokensField: max_completion_tokens',
      advice: 'Set maxTokensField: max_completion_tokens for this upstream in the config.',
    });
  });

  test('streamUsage', async () => {
    playProvider(upstream, {
      stream: (response, { stream_options: options }) =>
        options === undefined ? sendEvents(response, stream) : sendJson(response, 400, refusal),
    });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.stream', status: 'fault' }]);
    expect(checkNamed(report, 'chat.stream').advice).toBe(
      'Set streamUsage: given for this upstream in the config.',
    );
  });

  test('dialects', async () => {
    upstream.play((response, { path, body }) => {
      if (path === '/v1/models') return sendJson(response, 200, '{"data":[{"id":"tiny"}]}');
      if (path !== '/v1/responses' || body.includes('unknown-model'))
        return sendJson(response, 404, notFound);
      if (body.includes('"stream":true')) return sendEvents(response, openaiResponses.stream);
      sendJson(response, 200, openaiResponses.body);
    });
    const report = await examineUrl(upstream.url, { triesResponses: true });
    expect(checkNamed(report, 'chat.whole')).toMatchObject({
      status: 'fault',
      advice: 'Set dialects: [responses] for this upstream in the config.',
    });
    expect(checkNamed(report, 'responses.stream').status).toBe('ok');
    expect(report.checks.filter(({ id }) => id === 'responses.stream')).toHaveLength(1);
  });

  test('nothing, where no other setting helps', async () => {
    playProvider(upstream, { whole: (response) => sendJson(response, 400, refusal) });
    const report = await examineUrl(upstream.url);
    const found = checkNamed(report, 'chat.whole');
    expect([found.status, found.detail]).toEqual([
      'fault',
      expect.stringMatching(/^POST http:.*\/v1\/chat\/completions: .*\(status 400\)/),
    ]);
    expect(found.advice).not.toMatch(/maxTokensField/);
    expect(report.checks.map(({ id }) => id)).not.toContain('chat.stream');
  });
});

describe('an answer that is cut at its output cap', () => {
  test('with the finish reason stop is a fault: the ending is invented', async () => {
    playProvider(upstream, { long: (response) => sendJson(response, 200, wholeBody('one two', 'stop', 16)) });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.length', status: 'fault' }]);
    expect(checkNamed(report, 'chat.length').detail).toBe('cut at 16 tokens, but the finish reason is stop');
  });

  test('is a warning if it does not keep to the cap', async () => {
    playProvider(upstream, { long: (response) => sendJson(response, 200, wholeBody('one two', 'stop', 90)) });
    const found = checkNamed(await examineUrl(upstream.url), 'chat.length');
    expect([found.status, found.detail]).toEqual(['warning', '90 tokens for a cap of 16']);
    expect(found.advice).toMatch(/maxTokensField: max_completion_tokens/);
  });

  test('is ok if the model ended by itself', async () => {
    playProvider(upstream, { long: (response) => sendJson(response, 200, wholeBody('one', 'stop', 9)) });
    expect(checkNamed(await examineUrl(upstream.url), 'chat.length').status).toBe('ok');
  });
});

describe('the models that are asked', () => {
  const routes = (...names: string[]): object =>
    Object.fromEntries(
      names.map((name) => [`m-${name}`, { routes: [{ upstream: 'mine', model: name }], free: true }]),
    );

  test('are one for each upstream; the models of its other routes are named as not asked', async () => {
    playProvider(upstream);
    const report = await examineUrl(upstream.url, { models: routes('tiny', 'big', 'huge') });
    expect(checkNamed(report, 'other_models')).toMatchObject({
      status: 'skipped',
      detail: "not asked: 'big', 'huge' (--model asks one of them)",
    });
    const many = await examineUrl(upstream.url, {
      models: routes('tiny', 'a', 'b', 'c', 'd', 'e', 'f', 'g'),
    });
    expect(checkNamed(many, 'other_models').detail).toMatch(/'e' and 2 more \(/);
    const single = await examineUrl(upstream.url, { models: routes('tiny') });
    expect(single.checks.map(({ id }) => id)).not.toContain('other_models');
  });
});

describe('a web page instead of an answer', () => {
  test.each<[string, boolean, string, RegExp]>([
    [
      'where the list of models was read is no fault of the path',
      true,
      '',
      /^The list of models is at this URL/,
    ],
    [
      'at a URL with a version is a fault of the path or the model',
      false,
      '',
      /^Check the path of upstreams\.mine\.url/,
    ],
    [
      'at a URL without a version is a missing /v1',
      false,
      '/v1',
      /^Is \/v1 missing at the end of upstreams\.mine\.url/,
    ],
  ])('%s', async (_name, hasList, cut, advice) => {
    upstream.play((response, { path }) =>
      hasList && path === '/v1/models'
        ? sendJson(response, 200, '{"data":[{"id":"tiny"}]}')
        : void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    );
    const report = await examineUrl(upstream.url.replace(new RegExp(`${cut}$`), ''), { model: 'tiny' });
    expect(checkNamed(report, 'chat.whole.wrong_content_type').advice).toMatch(advice);
  });
});

test('a wrong key is one fault with one advice, although the list of models needs it, too', async () => {
  const wrong = '{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}';
  upstream.play((response) => sendJson(response, 401, wrong));
  const settings = { upstream: { apiKey: 'a-wrong-key-for-tests' }, model: 'tiny' };
  const report = await examineUrl(upstream.url, settings);
  expect(findings(report)).toEqual([{ id: 'key', status: 'fault' }]);
  expect(checkNamed(report, 'models')).toMatchObject({
    status: 'skipped',
    detail: 'the list needs an accepted key (status 401)',
  });
  expect(report.checks.filter(({ advice }) => advice !== null)).toHaveLength(1);
});

describe('a model that does not exist', () => {
  test.each<[string, number, string, RegExp]>([
    ['that is answered for', 200, wholeBody(), /is answered for/],
    ['that is a server error', 500, notFound, /status 500, not 404/],
    ['with an error in another form', 404, '{"detail":"no"}', /is not \{"error"/],
  ])('%s is a warning', async (_name, status, body, detail) => {
    playProvider(upstream, { unknown: (response) => sendJson(response, status, body) });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.unknown_model', status: 'warning' }]);
    expect(checkNamed(report, 'chat.unknown_model').detail).toMatch(detail);
  });
});

describe('an error under status 200 for a model that does not exist', () => {
  test.each<[string, string, string, string]>([
    [
      'is ok if it refuses the request',
      '{"error":{"message":"no","code":"invalid_request_error"}}',
      'ok',
      'refused with an error under status 200',
    ],
    [
      'is a warning if it does not say why',
      '{"error":{"message":"no"}}',
      'warning',
      'a model that does not exist is refused with an error under status 200, not 404',
    ],
    [
      'is not judged if the upstream is busy',
      '{"error":{"message":"no","code":429}}',
      'skipped',
      'the upstream is busy (an error under status 200)',
    ],
    [
      'is not judged if there is none',
      '{"hello":1}',
      'skipped',
      'the answer fails without an error of the server',
    ],
  ])('%s', async (_name, body, status, detail) => {
    playProvider(upstream, { unknown: (response) => sendJson(response, 200, body) });
    const report = await examineUrl(upstream.url);
    expect(checkNamed(report, 'chat.unknown_model')).toMatchObject({ status, detail });
  });
});

test('a busy upstream is not judged by a model that does not exist', async () => {
  playProvider(upstream, { unknown: (response) => sendJson(response, 429, notFound) });
  expect(checkNamed(await examineUrl(upstream.url), 'chat.unknown_model').status).toBe('skipped');
});

describe('a whole answer', () => {
  test.each<[string, string, string]>([
    ['with an error under status 200', '{"error":{"message":"no","code":500}}', 'error_in_answer'],
    ['without a finish reason', wholeBody('Hi', null), 'missing_finish'],
    ['that is not JSON', 'oops', 'bad_json'],
    ['that is another object', '{"hello":1}', 'invalid'],
  ])('%s is a fault', async (_name, body, rule) => {
    playProvider(upstream, { whole: (response) => sendJson(response, 200, body) });
    const report = await examineUrl(upstream.url);
    expect(checkNamed(report, `chat.whole.${rule}`).status).toBe('fault');
  });

  test('after blank lines, as a queueing provider sends it, is ok', async () => {
    playProvider(upstream, { whole: (response) => sendJson(response, 200, `\n\n\n${wholeBody()}`) });
    expect(findings(await examineUrl(upstream.url))).toEqual([]);
  });

  test('without text is a warning that tells thoughts from silence', async () => {
    playProvider(upstream, { whole: (response) => sendJson(response, 200, wholeBody('', 'length', 256)) });
    const silent = checkNamed(await examineUrl(upstream.url), 'chat.whole');
    expect([silent.status, silent.detail]).toEqual(['warning', expect.stringMatching(/without any text$/)]);
    const thinking = wholeBody('', 'length', 256).replace(
      '"content":""',
      '"content":"","reasoning_content":"hm"',
    );
    playProvider(upstream, { whole: (response) => sendJson(response, 200, thinking) });
    expect(checkNamed(await examineUrl(upstream.url), 'chat.whole').advice).toMatch(/model thinks/);
  });

  test('whose content is a list, or that lacks fields, is a warning', async () => {
    const list = wholeBody([{ type: 'text', text: 'Hi' }]).replace('"id":"c-1",', '');
    playProvider(upstream, { whole: (response) => sendJson(response, 200, list) });
    expect(findings(await examineUrl(upstream.url))).toEqual([
      { id: 'chat.whole.missing_fields', status: 'warning' },
      { id: 'chat.whole.content_list', status: 'warning' },
    ]);
  });
});
