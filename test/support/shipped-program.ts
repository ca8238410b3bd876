import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fetchConsoleModules } from './console-modules.ts';
import { eventually } from './eventually.ts';
import { startCollector } from './otlp-collector.ts';
import { readRecords } from './records.ts';
import { runCommand } from './run-command.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { startServing } from './serving-process.ts';
import type { ServingProcess } from './serving-process.ts';

const messages = [{ role: 'user', content: 'hello' }];

/**
 * A gateway of a program that is shipped, in front of a scripted upstream, which has a path that is passed on, too; both end
 * with the test.
 */
export async function serveShipped(
  program: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly serving: ServingProcess; readonly upstream: ScriptedUpstream }> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.play(sayTexts(['one ', 'two']));
  const config = {
    upstreams: { own: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'own', model: 'tiny' }], price: { input: '1', output: '2' } } },
    passthrough: [{ path: '/tokenize', upstream: 'own', free: true }],
  };
  const serving = await startServing({ config, environment, program, keySettings: { balance: '5.00' } });
  return { serving, upstream };
}

/** The tests of what every form of the program does in which it is shipped; `program` is the path of its file. */
export function testShippedProgram(program: () => string): void {
  test('streams, counts tokens, passes paths on, keeps records in SQLite, sends traces and ends by SIGTERM', async () => {
    const collector = await startCollector();
    onTestFinished(() => collector.close());
    const { serving, upstream } = await serveShipped(program(), {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    });
    // Without usage, so that the gateway counts.
    upstream.play((response) => {
      const frames = chatFrames(['one ', 'two']).filter((frame) => !frame.includes('usage'));
      sendStream(response, frames).end();
    });
    const asked = { model: 'small', stream: true, messages };
    const text = await (await serving.post('/v1/chat/completions', asked)).text();
    expect(text).toContain('data: [DONE]');
    upstream.play((response) => sendJson(response, 200, '{"tokens":[1,2]}'));
    const passed = await serving.post('/tokenize', { text: 'one two' });
    expect(await passed.json()).toEqual({ tokens: [1, 2] });
    await eventually('the spans are sent', () => collector.spans.some(({ kind }) => kind === 2));

    const listed = await runCommand(['records', '--json'], serving.folder, serving.adminEnvironment);
    expect(listed.stdout).toContain('"completed"');
    serving.server.signal('SIGTERM');
    expect((await serving.server.finished).code).toBe(0);
    const records = readRecords(join(serving.folder, 'data', 'textgate.db'));
    expect(records).toContainEqual(
      expect.objectContaining({ outcome: 'completed', usage_source: 'counted', output_tokens: 2 }),
    );
  });

  test('shows the documentation at /docs, and the console, whose modules are JavaScript', async () => {
    const { serving } = await serveShipped(program());
    const index = await fetch(`${serving.adminUrl}/docs/`);
    expect([index.status, await index.text()]).toEqual([200, expect.stringContaining('<h1')]);
    const readme = await fetch(`${serving.adminUrl}/docs/readme`);
    expect([readme.status, await readme.text()]).toEqual([200, expect.stringContaining('npm ci')]);
    const modules = await fetchConsoleModules(serving.adminUrl);
    expect(modules.get('vendor/preact.js')).toMatch(/export/);
    expect([...modules].filter(([, text]) => text === null)).toEqual([]);
    const written = [...modules].filter(([path]) => !path.startsWith('vendor/'));
    expect(written.filter(([, text]) => /import type|: Promise<|\.ts'/.test(text ?? ''))).toEqual([]);
    const style = await fetch(`${serving.adminUrl}/console/style.css`);
    expect([style.status, style.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
  });
}
