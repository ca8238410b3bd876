import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { chatFrames, cut, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

let lines = '';
const { upstream, gateway } = await openStage({
  logFormat: 'text',
  logDestination: { write: (line: string) => void (lines += line) },
});
const [opening = '', text = '', , , done = ''] = chatFrames(['Hello']);
const early = 'upstream_truncated';

/** Broken answers with status 200: what the provider sends, the client's code, and the operator's cause and advice. */
const broken: readonly (readonly [
  name: string,
  play: (response: ServerResponse) => void,
  code: string,
  cause: string,
  advice: string,
])[] = [
  [
    'a stream with [DONE] but no finish reason',
    (response) => void sendStream(response, [opening, text, done]).end(),
    early,
    'the answer has an end marker, but no finish reason',
    'Set finishReason: optional, if the server never gives a finish reason.',
  ],
  [
    'a stream that ends early',
    (response) => void sendStream(response, [opening, text]).end(),
    early,
    'the answer ends without a finish reason and without an end marker',
    'Check the log of the server, and the timeouts of the proxies before it.',
  ],
  [
    'an empty stream',
    (response) => void sendStream(response, []).end(),
    early,
    'the answer ends before any text, without an end marker',
    'Check the log of the server, and the timeouts of the proxies before it.',
  ],
  [
    'a stream whose connection breaks',
    (response) =>
      void sendStream(response, [opening]).write(text, () => setImmediate(() => cut(response, 'rst'))),
    early,
    'the connection broke in the middle of the answer',
    'Check the log of the server, and the proxies on the way there.',
  ],
  [
    'a web page',
    (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>'),
    'upstream_invalid',
    'a web page instead of JSON',
    'Check the path of upstreams.local.url, or the name of the model.',
  ],
  [
    'an answer with huge headers',
    (response) => void response.writeHead(200, { 'set-cookie': 'x'.repeat(40_000) }).end('{}'),
    'upstream_invalid',
    'the headers of the answer are larger than 16 KiB',
    'Check which headers the server and the proxies before it add',
  ],
  [
    'an event that is not JSON',
    (response) => void sendStream(response, [opening, 'data: {"choices\n\n']).end(),
    'upstream_invalid',
    'the upstream sent an event that is not a JSON object',
    'Report it to the makers of the server',
  ],
];

describe('a broken answer with status 200', () => {
  test.each(broken)(
    '%s has its cause in the log, once in its record, and in /readyz',
    async (_name, play, code, cause, advice) => {
      upstream.play(play);
      lines = '';
      const response = await gateway.post('/v1/chat/completions', {
        model: 'small',
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      });
      expect(await response.text().catch(() => code)).toContain(code);
      const call = `POST ${upstream.url}/chat/completions: ${cause}`;

      const logged = lines.replaceAll(/\n +/g, ' ');
      expect(logged).toContain(`local: ${call}`);
      const { body } = await askAdmin(gateway, 'GET', `/records/${response.headers.get('x-request-id')}`);
      expect(body.attempts[0].cause).toContain(`${call}. ${advice}`);
      expect(body.cause).toBeNull();
      const ready = (await (await fetch(`${gateway.adminUrl}/readyz`)).json()) as { upstreams: object };
      expect(JSON.stringify(ready.upstreams)).toContain(`${call}. ${advice}`);
    },
  );

  test('without any text does not speak of the text so far', async () => {
    upstream.play((response) => void sendStream(response, []).end());
    const response = await gateway.post('/v1/chat/completions', {
      model: 'small',
      stream: true,
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({
      error: { code: early, message: "The model's provider ended the answer before any text." },
    });
  });
});
