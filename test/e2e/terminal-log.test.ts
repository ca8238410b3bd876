import { afterAll, beforeAll, expect, test } from 'vitest';
import measure from 'fast-string-truncated-width';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import { compareSection } from '../support/generated-section.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

/** An address at which no process listens: a port that was free a moment ago may be another test's by now. */
const nothingThere = 'http://127.0.0.1:1/v1';

let lines = '';
let bought: ScriptedUpstream;
let gateway: Gateway;
let ask: (model: string, body?: object) => Promise<void>;

beforeAll(async () => {
  bought = await startUpstream();
  gateway = createGateway(
    {
      server: { port: 0 },
      admin: { port: 0 },
      storage: { url: 'sqlite::memory:' },
      upstreams: { own: { url: nothingThere }, bought: { url: bought.url } },
      models: {
        small: {
          routes: [
            { upstream: 'own', model: 'qwen3' },
            { upstream: 'bought', model: 'qwen/qwen3' },
          ],
          free: true,
        },
        large: { routes: [{ upstream: 'bought', model: 'qwen/qwen3-max' }], free: true },
      },
    },
    { logLevel: 'info', logFormat: 'text', logDestination: { write: (line) => void (lines += line) } },
  );
  const { url } = await gateway.listen();
  const { key } = await gateway.keys.create({ name: 'bob' });
  ask = async (model, body = {}) => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], stream: true, ...body }),
    });
    // A stream that fails breaks off.
    await response.text().catch(() => '');
  };
});

afterAll(async () => {
  await gateway.close();
  await bought.close();
});

test('the README shows what a terminal shows: failovers, broken streams and refusals with their causes', async () => {
  bought.play(sayTexts(['Hello', ' there']));
  await ask('small');
  bought.play((response) => {
    const [opening = '', text = ''] = chatFrames(['Hello']);
    sendStream(response, []).write(opening + text, () => cut(response, 'rst'));
  });
  await ask('large');
  bought.play(
    (response) =>
      void response
        .writeHead(400, { 'content-type': 'application/json' })
        .end('{"error":{"code":"invalid_value","message":"max_tokens is too large: 99999"}}'),
  );
  await ask('large', { max_tokens: 99_999 });
  await ask('smal');

  const shown = lines.trimEnd().split('\n');
  for (const line of shown) expect(measure(line).width).toBeLessThanOrEqual(100);
  const section = compareSection('the log on a terminal', `\`\`\`text\n${masked(shown).join('\n')}\n\`\`\``);
  expect(section.found).toBe(section.wanted);
});

/** The lines with the same times, ports and ids in every run, of the same width. */
function masked(shown: readonly string[]): readonly string[] {
  const times = ['87ms', '412ms', '31ms', '1ms'];
  let requests = -1;
  return shown.map((line) => {
    if (!line.startsWith(' ')) requests++;
    return line
      .replace(/^\d\d:\d\d:\d\d/, `21:10:1${requests}`)
      .replace(/127\.0\.0\.1:\d+/g, (found) => '127.0.0.1:8000'.padEnd(found.length).trimEnd())
      .replaceAll(/ *\d+(?:\.\d+)?m?s(?= )/g, (found) => (times[requests] ?? '').padStart(found.length))
      .replace(/[0-9a-f]{8}$/, '1ff07512');
  });
}
