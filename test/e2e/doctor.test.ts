import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkNamed, examineUrl, findings, playProvider, sendEvents } from '../support/examine.ts';
import { compareSection } from '../support/generated-section.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { runCommand } from '../support/run-command.ts';
import { startTextgate } from '../support/textgate-process.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

/** Examines a gateway with its key, as a user would who does not know what is behind the URL. */
async function examineGateway({ url, key }: TestGateway) {
  return examineUrl(`${url}/v1`, { upstream: { apiKey: key }, triesResponses: true, triesWrongKey: true });
}

/** All checks of a whole examination over HTTP, of both protocols. */
const allChecks =
  'address connection tls models key wrong_key chat.whole chat.stream chat.usage chat.length chat.stop chat.unknown_model ' +
  'responses.whole responses.stream responses.usage responses.length';

describe('textgate doctor finds nothing wrong with a textgate', () => {
  test('in front of a provider', async () => {
    upstream.play(sayTexts(['Hello', ' from', ' a provider'], 'length'));
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    const report = await examineGateway(gateway);
    expect(findings(report)).toEqual([]);
    expect(report.checks.map(({ id }) => id).join(' ')).toBe(allChecks);
    await gateway.close();
  });

  test('in front of the built-in demo', async () => {
    const gateway = await startGateway();
    const report = await examineGateway(gateway);
    expect(findings(report)).toEqual([]);
    expect(report.checks.map(({ id }) => id).join(' ')).toBe(allChecks);
    await gateway.close();
  });

  test('as the command that a user runs, which exits with 0', async () => {
    upstream.play(sayTexts(['Hello']));
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    const { code, stdout } = await runCommand(['doctor', `${gateway.url}/v1`, '--key', gateway.key]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\n1 upstream: 1 ok, 0 with warnings, 0 with faults\n$/);
    await gateway.close();
  });

  test('but names the fault of its key', async () => {
    const gateway = await startGateway();
    const report = await examineUrl(`${gateway.url}/v1`, { upstream: { apiKey: `${gateway.key}x` } });
    expect(findings(report)).toEqual([{ id: 'key', status: 'fault' }]);
    await gateway.close();
  });

  test('but names an answer of both protocols that the gateway ends as failed', async () => {
    const [role = '', first = ''] = chatFrames(['Hello']);
    upstream.play((response, { body }) => {
      if (body.includes('"stream":true')) sendStream(response, [role, first]).end();
      else void sayTexts(['Hello'])(response, { method: 'POST', path: '', headers: {}, body });
    });
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    const report = await examineGateway(gateway);
    expect(checkNamed(report, 'chat.stream.error_in_answer').status).toBe('fault');
    expect(checkNamed(report, 'responses.stream.error_in_answer').status).toBe('fault');
    expect(checkNamed(report, 'responses.whole').status).toBe('ok');
    await gateway.close();
  });
});

/** A real model server, such as llama-server: its base address, ending in `/v1`. */
const llamaUrl = process.env['LLAMA_URL'];

describe.skipIf(llamaUrl === undefined)('a real model server (set LLAMA_URL to run this)', () => {
  test.each(['chat', 'anthropic'] as const)('has no fault in the dialect %s', async (dialect) => {
    const report = await examineUrl(llamaUrl ?? '', { upstream: { dialects: [dialect] } });
    expect(findings(report).filter(({ status }) => status === 'fault')).toEqual([]);
    expect(checkNamed(report, `${dialect}.stream`).status).toBe('ok');
    expect(checkNamed(report, `${dialect}.usage`).status).toBe('ok');
  });

  test('has no other fault in Responses than that llama-server takes every end for a completion', async () => {
    const report = await examineUrl(llamaUrl ?? '', { triesResponses: true });
    const faults = findings(report).filter(({ status }) => status === 'fault');
    expect(faults.filter(({ id }) => id !== 'responses.length')).toEqual([]);
    expect(checkNamed(report, 'responses.stream').status).toBe('ok');
  });
});

/** The answer of a provider that does not accept the key. */
const wrongKey = '{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}';

/** The output for the documented config, with the addresses of an example. */
async function runDocumented(): Promise<string> {
  const stream = chatFrames(['Hi', ' there'])
    .join('')
    .replace('"finish_reason":"stop"', '"finish_reason":null');
  playProvider(upstream, { stream: (response) => sendEvents(response, stream) });
  const strict = await startUpstream();
  strict.play((response, { path }) =>
    path === '/v1/models'
      ? sendJson(response, 200, '{"data":[{"id":"big"},{"id":"tiny"}]}')
      : sendJson(response, 401, wrongKey),
  );
  const folder = makeTemporaryFolder();
  writeFileSync(
    `${folder}/textgate.yaml`,
    `
upstreams:
  own: { url: "${upstream.url}" }
  bought: { url: "${strict.url}", apiKey: "\${OPENROUTER_API_KEY}" }
models:
  small: { routes: [{ upstream: own, model: tiny }, { upstream: bought, model: tinny }], free: true }
`,
  );
  const environment = { OPENROUTER_API_KEY: 'a-wrong-key-of-an-operator' };
  const { stdout } = await startTextgate(['doctor', '--config', 'textgate.yaml'], folder, environment)
    .finished;
  await strict.close();
  return stdout
    .replaceAll(new URL(strict.url).host, '127.0.0.1:9000')
    .replaceAll(new URL(upstream.url).host, '127.0.0.1:8000')
    .replaceAll(/\b\d+ ms/g, '12 ms');
}

/** The first and last line of the README's extract: what is most worth reading. */
const extract = [/^ {2}ok +chat\.whole/, /^ {2}ok +chat\.usage/] as const;

test('the documentation shows the real output, and the README an extract of it', async () => {
  const output = await runDocumented();
  const whole = compareSection('the output of doctor', fenced(output.trim()));
  expect(whole.found).toBe(whole.wanted);
  const lines = output.split('\n');
  const [from, to] = extract.map((pattern) => lines.findIndex((line) => pattern.test(line)));
  const part = compareSection('an extract of doctor', fenced(lines.slice(from, (to ?? 0) + 1).join('\n')));
  expect(part.found).toBe(part.wanted);
});

function fenced(text: string): string {
  return `\`\`\`text\n${text}\n\`\`\``;
}
