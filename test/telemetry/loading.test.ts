import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const run = promisify(execFile);
const gateway = pathToFileURL(join(import.meta.dirname, '..', '..', 'src', 'gateway.ts')).href;

/**
 * Opens and closes a gateway in a process of its own, and prints which optional packages were loaded.
 * `@opentelemetry/api` is not optional: prom-client always loads it.
 */
const serveOnce = `
  const { registerHooks } = require('node:module');
  const loaded = new Set();
  registerHooks({
    load(url, context, next) {
      const [, name] = /node_modules\\/(@opentelemetry\\/(?!api\\/)[^/]+)\\//.exec(url) ?? [];
      if (name !== undefined) loaded.add(name);
      return next(url, context);
    },
  });
  const serve = async () => {
    const { createGateway } = await import('${gateway}');
    const gateway = createGateway({
      server: { port: 0 }, admin: { port: 0 }, storage: { url: 'sqlite::memory:' },
      upstreams: { demo: { url: 'demo:' } },
      models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
    });
    await gateway.listen();
    await gateway.close();
    console.log('\\nloaded ' + JSON.stringify([...loaded]));
  };
  serve();`;

async function loadedPackages(variables: Record<string, string>): Promise<string[]> {
  const { stdout } = await run(process.execPath, ['-e', serveOnce], {
    env: { PATH: process.env['PATH'], ...variables },
  });
  return JSON.parse(/^loaded (.*)$/m.exec(stdout)?.[1] ?? '') as string[];
}

const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };

test('a gateway runs in `node -e` of ES modules, whose option no thread accepts', async () => {
  const work = serveOnce.replaceAll('require(', 'process.getBuiltinModule(');
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', work]);
  expect(stdout).toContain('loaded');
});

describe('OpenTelemetry', () => {
  test('is not loaded without a collector', async () => {
    expect(await loadedPackages({})).toEqual([]);
  });

  test('is loaded with a collector', async () => {
    expect(await loadedPackages(collector)).toContain('@opentelemetry/sdk-trace');
  });
});
