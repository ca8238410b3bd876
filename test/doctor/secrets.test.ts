import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UpstreamReport } from '../../src/doctor/report.ts';
import { hideSecrets } from '../../src/doctor/without-secrets.ts';
import { examineUrl, findings, playProvider, sendEvents, wholeBody } from '../support/examine.ts';
import { chatFrames, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

/** A key that is longer than a quoted name, and is written differently in a path and in a media type. */
const key = 'Sk_Canary/Ab3dEf9hIj+KlMn0pQrSt=UvWxYz1234567890AbCdEfGhIjKlMnOpQrSt';

/** The longest beginning of the key that a report may hold, in characters. */
const harmlessChars = 8;

/** Expects that a report holds no beginning of the key in any form. */
function expectNoKey(report: UpstreamReport): void {
  const printed = JSON.stringify(report).toLowerCase();
  for (const form of [key, encodeURIComponent(key)])
    expect(printed).not.toContain(form.slice(0, harmlessChars).toLowerCase());
}

const list = (...names: readonly string[]): string => JSON.stringify({ data: names.map((id) => ({ id })) });

describe('a key of more than 40 characters is not shown if the upstream returns it', () => {
  const settings = { upstream: { apiKey: key } };

  test('as the name of the model that is asked', async () => {
    playProvider(upstream, {
      models: (response) => sendJson(response, 200, list(key)),
      unknown: (response) => sendJson(response, 200, wholeBody()),
    });
    const report = await examineUrl(upstream.url, settings);
    expectNoKey(report);
    expect(JSON.stringify(report)).toContain("the first one is asked: '(hidden)'");
  });

  test('as the name of the nearest model', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 200, list('tiny', key)) });
    const asked = `${key.slice(1)}x`;
    const report = await examineUrl(upstream.url, { ...settings, model: asked });
    expect(JSON.stringify(report)).toContain("did you mean '(hidden)'?");
  });

  test('as the finish reason of whole and streamed answers', async () => {
    playProvider(upstream, {
      whole: (response) => sendJson(response, 200, wholeBody('Hi', key)),
      stream: (response) => sendEvents(response, chatFrames(['Hi'], key).join('')),
    });
    const report = await examineUrl(upstream.url, settings);
    expectNoKey(report);
    expect(findings(report)).toContainEqual({ id: 'chat.stream.unknown_finish_reason', status: 'fault' });
  });

  test('as the type of the content', async () => {
    playProvider(upstream, {
      whole: (response) =>
        void response.writeHead(200, { 'content-type': `json/${key.replaceAll('/', '-')}` }).end(wholeBody()),
    });
    const apiKey = key.replaceAll('/', '-');
    const report = await examineUrl(upstream.url, { upstream: { apiKey } });
    expect(JSON.stringify(report).toLowerCase()).not.toContain('json/sk');
    expect(findings(report)).toContainEqual({ id: 'chat.whole.wrong_content_type', status: 'warning' });
  });

  test('in the path of a call, where it is encoded', async () => {
    upstream.play((response, { method }) =>
      method === 'GET' ? sendJson(response, 200, list(key)) : sendJson(response, 500, '{}'),
    );
    const report = await examineUrl(upstream.url, { upstream: { apiKey: key, dialects: ['gemini'] } });
    expectNoKey(report);
    expect(JSON.stringify(report)).toContain('/models/(hidden):');
  });

  test('although the config has it in a header with its scheme', async () => {
    playProvider(upstream, { models: (response) => sendJson(response, 200, list(key)) });
    const headers = { authorization: `Bearer ${key}` };
    expectNoKey(await examineUrl(upstream.url, { upstream: { headers } }));
  });
});

test.each([[['tenant1', 'tenant1-secret-1234567890']], [['tenant1-secret-1234567890', 'tenant1']]])(
  'of the secrets %j, one of which begins another, nothing is left',
  (secrets) => {
    expect(hideSecrets("'tenant1-secret-1234567890' of tenant1", secrets)).toBe("'(hidden)' of (hidden)");
  },
);

test('characters that mean something in a pattern are masked as they are', () => {
  expect(hideSecrets('a+b(c)|d$ and aab', ['a+b(c)|d$'])).toBe('(hidden) and aab');
  expect(hideSecrets('nothing to hide', [])).toBe('nothing to hide');
});
