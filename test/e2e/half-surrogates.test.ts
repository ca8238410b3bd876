import { afterEach, beforeEach, expect, test } from 'vitest';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['yes']));
});
afterEach(() => upstream.close());

test.each([
  ['/chat/completions', { messages: [{ role: 'user', content: 'a\uD83D' }], stop: ['\uDE00b'] }],
  [
    '/chat/completions',
    {
      messages: [
        { role: 'system', content: 'short' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: '\uDE00' },
          ],
        },
      ],
    },
  ],
  ['/responses', { input: 'a\uDE00b' }],
  ['/responses', { instructions: '\uD83D', input: [{ role: 'user', content: 'a' }] }],
])('half a surrogate pair of a question to %s reaches the upstream as U+FFFD: %j', async (path, question) => {
  const gateway = await startGateway({ upstreamUrl: upstream.url });
  try {
    const answer = await fetch(`${gateway.url}/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: 'small', ...question }),
    });
    expect(answer.status).toBe(200);
    const sent = upstream.seen[0]?.body ?? '';
    expect(sent).toContain('\uFFFD');
    expect(sent).not.toMatch(/\\ud[89a-f]/i);
  } finally {
    await gateway.close();
  }
});

test('two halves of a surrogate pair in two parts of a question are one character upstream', async () => {
  const gateway = await startGateway({ upstreamUrl: upstream.url });
  try {
    const content = ['\uD83D', '\uDE00'].map((text) => ({ type: 'text', text }));
    await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content }] }),
    });
    expect(upstream.seen[0]?.body ?? '').toContain('"\u{1F600}"');
  } finally {
    await gateway.close();
  }
});
