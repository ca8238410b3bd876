import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkNamed, examineUrl, findings, sendEvents } from '../support/examine.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { anthropic, gemini } from '../support/providers/native-scripts.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

/** Plays a provider with a protocol of its own. */
function play(stream: string, body: string): void {
  upstream.play((response, { method, path, body: asked }) => {
    if (method === 'GET') return sendJson(response, 200, '{"data":[{"id":"tiny"}]}');
    if (path.includes('unknown-model') || asked.includes('unknown-model'))
      return sendJson(response, 404, '{}');
    if (path.includes('stream') || asked.includes('"stream":true')) return sendEvents(response, stream);
    sendJson(response, 200, body);
  });
}

describe.each([
  [
    'anthropic',
    anthropic,
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
    'overloaded_error',
  ],
  ['gemini', gemini, 'data: {"error":{"code":503,"status":"UNAVAILABLE"}}\n\n', 'UNAVAILABLE'],
] as const)('an upstream of the dialect %s', (dialect, script, error, said) => {
  test('is examined in that dialect, with its key in the header of the dialect', async () => {
    play(script.stream, script.body);
    upstream.seen.splice(0);
    const report = await examineUrl(upstream.url, {
      upstream: { dialects: [dialect], apiKey: 'a-key-for-tests' },
    });
    expect(findings(report).filter(({ status }) => status === 'fault')).toEqual([]);
    expect(checkNamed(report, `${dialect}.stream`).status).toBe('ok');
    expect(checkNamed(report, 'key').detail).toBe('accepted');
    expect(Object.values(upstream.seen[0]?.headers ?? {})).toContain('a-key-for-tests');
  });

  test('is at fault with an error in the stream, and with a stream that is cut off', async () => {
    const [head = ''] = script.stream.split('\n\n');
    play(`${head}\n\n${error}`, script.body);
    const failed = await examineUrl(upstream.url, { upstream: { dialects: [dialect] } });
    expect(checkNamed(failed, `${dialect}.stream.error_in_answer`).detail).toContain(`status 200: ${said}`);
    play(`${head}\n\n`, script.body);
    const ended = await examineUrl(upstream.url, { upstream: { dialects: [dialect] } });
    expect(checkNamed(ended, `${dialect}.stream.cut_off`).status).toBe('fault');
  });
});
