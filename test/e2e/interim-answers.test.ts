import { describe, expect, test } from 'vitest';
import { readAnswer } from '../support/client-answer.ts';
import { anthropic, gemini } from '../support/providers/native-scripts.ts';
import { openai, openaiResponses } from '../support/providers/openai-scripts.ts';
import { whole } from '../support/providers/provider-script.ts';
import { openStage } from '../support/stage.ts';

const scripts = { chat: openai, responses: openaiResponses, anthropic, gemini };

describe.each(['chat', 'responses', 'anthropic', 'gemini'] as const)(
  'an upstream of dialect %s',
  async (dialect) => {
    const passthrough = [{ path: '/tokenize', upstream: 'local' }];
    const { upstream, gateway } = await openStage({ dialect, passthrough });
    const { body, stream, usage } = scripts[dialect];

    test('may send interim answers without a request for them, whole and streamed', async () => {
      upstream.play((response, request) => {
        response.writeContinue();
        response.writeEarlyHints({ link: '</x>; rel=preload' });
        response.writeContinue();
        const isStream = request.path.includes('stream') || request.body.includes('"stream":true');
        response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
        response.end(isStream ? stream : body);
      });
      for (const protocol of ['chat', 'responses'] as const)
        for (const isStream of [false, true])
          for (const time of [1, 2])
            expect([time, await readAnswer(gateway, protocol, isStream)]).toEqual([
              time,
              { ending: 'stop', text: whole, usage: [usage[0], usage[2]], code: null },
            ]);
      expect(await upstream.connections()).toBe(1);
    });

    test('may send them before what is passed on, too', async () => {
      upstream.play((response) => {
        response.writeContinue();
        response.end('{"tokens":1}');
      });
      const passedOn = await gateway.post('/tokenize', {});
      expect([passedOn.status, await passedOn.text()]).toEqual([200, '{"tokens":1}']);
    });
  },
);
