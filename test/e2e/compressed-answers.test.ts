import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { readAnswer, readStream } from '../support/client-answer.ts';
import { compressions, openCompressed, streamCompressions } from '../support/compress.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { anthropic, gemini } from '../support/providers/native-scripts.ts';
import { openai, openaiResponses } from '../support/providers/openai-scripts.ts';
import { pieces, whole } from '../support/providers/provider-script.ts';
import { openStage } from '../support/stage.ts';

const scripts = { chat: openai, responses: openaiResponses, anthropic, gemini };
const protocols = ['chat', 'responses'] as const;
const paths = { chat: '/v1/chat/completions', responses: '/v1/responses' } as const;

describe.each(['chat', 'responses', 'anthropic', 'gemini'] as const)(
  'an upstream of dialect %s',
  async (dialect) => {
    const { upstream, gateway } = await openStage({ dialect });
    const { body, stream, usage } = scripts[dialect];
    const expected = { ending: 'stop', text: whole, usage: [usage[0], usage[2]], code: null };

    test.each(compressions)('may answer in %s, whole and streamed', async (_name, coding, compress) => {
      upstream.play((response, request) => {
        const isStream = request.path.includes('stream') || request.body.includes('"stream":true');
        const type = isStream ? 'text/event-stream' : 'application/json';
        response.writeHead(200, { 'content-type': type, 'content-encoding': coding });
        response.end(compress(isStream ? stream : body));
      });
      for (const protocol of protocols)
        for (const isStream of [false, true])
          expect(await readAnswer(gateway, protocol, isStream)).toEqual(expected);
    });

    test.each(Object.keys(streamCompressions) as (keyof typeof streamCompressions)[])(
      'has each text of a stream in %s delivered before the next one is sent',
      async (name) => {
        const events = stream.split(/(?<=\n\n)/);
        for (const protocol of protocols) {
          let isComplete = false;
          upstream.play(async (response) => {
            const { write, end } = openCompressed(response, name);
            let said = '';
            for (const event of events) {
              await write(event);
              const piece = pieces.find(
                (text) => event.includes(JSON.stringify(text)) && !event.includes(whole),
              );
              if (piece === undefined || said === whole || !whole.startsWith(said + piece)) continue;
              said += piece;
              const awaited = said;
              await eventually(
                `the client has ${awaited}`,
                () => readStream(protocol, live.text).text === awaited,
              );
            }
            expect(said).toBe(whole);
            isComplete = true;
            end();
          });
          const asked = protocol === 'chat' ? { messages: [{ role: 'user', content: 'x' }] } : { input: 'x' };
          const live = readLive(gateway.post(paths[protocol], { model: 'small', stream: true, ...asked }));
          await live.ended;
          expect(isComplete).toBe(true);
          expect(readStream(protocol, live.text)).toMatchObject({ ending: 'stop', text: whole });
        }
      },
    );
  },
);

describe('a compressed error body', async () => {
  const log: string[] = [];
  const { upstream, gateway } = await openStage({
    logDestination: { write: (line: string) => void log.push(line) },
  });
  const said = 'top_p is out of range';
  const error = JSON.stringify({ error: { message: said, code: 'bad_param' } });
  const post = () =>
    gateway.post('/v1/chat/completions', { model: 'small', messages: [{ role: 'user', content: 'x' }] });

  test.each(compressions)('in %s is decoded before its words are read', async (_name, coding, compress) => {
    upstream.play(
      (response) => void response.writeHead(400, { 'content-encoding': coding }).end(compress(error)),
    );
    const refused = await post();
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { upstream: { code: 'bad_param', message: said } } });
    expect(log.at(-1)).toContain(said);
  });

  test.each([
    ['compressed without a label', {}, gzipSync(error)],
    ['in a coding that is not known', { 'content-encoding': 'compress' }, Buffer.from(error)],
    ['damaged', { 'content-encoding': 'gzip' }, Buffer.from(error)],
    ['no text', {}, Buffer.from('bina\u0000\u0001ry')],
    ['in another character set', {}, Buffer.from('la donn\u00e9e est refus\u00e9e', 'latin1')],
  ])('that is %s has no words: its status decides', async (_name, headers, bytes) => {
    for (const [status, code] of [
      [400, 'invalid_value'],
      [429, 'upstream_rate_limited'],
      [503, 'overloaded'],
    ] as const) {
      log.length = 0;
      upstream.play((response) => void response.writeHead(status, headers).end(bytes));
      const refused = await post();
      const { error: shown } = (await refused.json()) as { error: { code: string; upstream?: object } };
      expect(shown.code).toBe(code);
      expect(JSON.stringify(shown.upstream ?? {})).not.toMatch(/"message":"/);
      // eslint-disable-next-line no-control-regex -- binary is what is looked for
      expect(log.join('')).not.toMatch(/\uFFFD|[\0-\u0008]|donn|bina/);
      await askAdmin(gateway, 'POST', '/upstreams/local/reset').catch(() => null);
    }
  });

  test('is empty where its head names a coding and nothing follows', async () => {
    upstream.play((response) => void response.writeHead(400, { 'content-encoding': 'gzip' }).end());
    expect(await (await post()).json()).toMatchObject({ error: { code: 'invalid_value' } });
  });
});
