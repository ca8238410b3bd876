import { readFileSync, symlinkSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConsoleFiles } from '../../src/http/console/open-files.ts';
import { eventually } from '../support/eventually.ts';
import { playProvider } from '../support/examine.ts';
import { readLive } from '../support/live-answer.ts';
import { bareRouter, commonJs, everyExport, nextHost } from '../support/package-hosts.ts';
import { installPackage } from '../support/packed-package.ts';
import type { InstalledPackage, ServedHost } from '../support/packed-package.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { childrenOf } from '../support/served-workers.ts';
import { servicesRequired } from '../support/services.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { freePorts, startTextgate } from '../support/textgate-process.ts';

const run = promisify(execFile);

/** How long packing and installing, and the checks of one host, may take, in milliseconds. */
const installMs = 300_000;
const hostMs = 60_000;

/** The examples of the documentation by file name, which their first line has. */
const examples = new Map(
  [
    ...readFileSync(join(import.meta.dirname, '../../docs/middleware.md'), 'utf8').matchAll(
      /```ts\n\/\/ (\S+)\n([^]*?)```/g,
    ),
  ].map(([, file = '', text = '']) => [file, text]),
);

const exampleOf = (file: string): string => {
  const text = examples.get(file);
  if (text === undefined) throw new Error(`docs/middleware.md has no example ${file}`);
  return text;
};

const withParser = (text: string): string =>
  text.replace("'/llm', gateway", "'/llm', express.json(), gateway");
const withExpress4 = (text: string): string => text.replace("from 'express'", "from 'express4'");

let installed: InstalledPackage;
let upstream: ScriptedUpstream;

describe.skipIf(!servicesRequired)(
  'the packed package (needs a package registry: REQUIRE_SERVICES=1)',
  () => {
    beforeAll(async () => {
      [installed, upstream] = await Promise.all([installPackage(), startUpstream()]);
      const gateway = exampleOf('gateway.ts').replace('http://127.0.0.1:8000/v1', upstream.url);
      for (const [file, text] of examples) installed.write(file, text);
      installed.write('gateway.ts', gateway);
      installed.write('with-next.ts', bareRouter);
      installed.write('express-with-parser.ts', withParser(exampleOf('express.ts')));
      installed.write('express4.ts', withExpress4(exampleOf('express.ts')));
      installed.write('express4-with-parser.ts', withExpress4(withParser(exampleOf('express.ts'))));
      installed.write('next.ts', nextHost);
      installed.write(
        'common.cjs',
        commonJs.replace('GATEWAY', gateway.replace(/^import .*$/m, '').replace('export const', 'const')),
      );
      installed.write('every-export.ts', everyExport);
      installed.write('run-manage.ts', "await import('./manage.ts'); process.exit();");
    }, installMs);

    afterAll(async () => {
      installed.remove();
      await upstream.close();
    });

    test('has the documentation and the example config, and no sources or tests', () => {
      expect(installed.files).toEqual(
        expect.arrayContaining([
          'README.md',
          'docs/middleware.md',
          'config/textgate.example.yaml',
          'config/textgate.schema.json',
          'dist/bundle/main.js',
          'dist/console/app.js',
          'dist/console/index.html',
          'dist/console/style.css',
        ]),
      );
      expect(installed.files.filter((path) => /^(src|test|dist\/start-\w*)\//.test(path))).toEqual([]);
    });

    test('has the console, with the modules of packages that it imports', async () => {
      const url = pathToFileURL(
        join(installed.folder, 'node_modules/textgate/dist/composition/package-files.js'),
      );
      const { consoleFiles } = (await import(url.href)) as { consoleFiles: ConsoleFiles };
      expect((await consoleFiles.find('app.js'))?.file.body).toContain("from './vendor/htm/preact.js'");
      for (const path of ['views/now/now.js', 'vendor/preact.js', 'vendor/uplot.js', 'vendor/uplot.css'])
        expect(await consoleFiles.find(path)).not.toBeNull();
    });

    test(
      'has types that are clean under strict rules, in ES modules and CommonJS, and fit the types of every host',
      async () => {
        installed.write(
          'every-export-common.cts',
          "import textgate = require('textgate');\nexport const gateway: textgate.Gateway | null = null;\n",
        );
        const own = [
          'every-export.ts',
          'every-export-common.cts',
          'node-http.ts',
          'with-next.ts',
          'express.ts',
        ];
        expect(await installed.typeCheck([...own, 'manage.ts', 'closing.ts'], { skipLibCheck: false })).toBe(
          '',
        );
        const withHosts = ['fastify.ts', 'hono.ts', 'app/v1/[...path]/route.ts'];
        expect(await installed.typeCheck(withHosts, { skipLibCheck: true })).toBe('');
      },
      hostMs,
    );

    test(
      'exports only its public names, and runs its command',
      async () => {
        const { folder } = installed;
        const list = "console.log(Object.keys(await import('textgate')).toSorted().join())";
        const { stdout } = await run(process.execPath, ['--input-type=module', '-e', list], { cwd: folder });
        expect(stdout.trim()).toBe('ConfigError,GatewayError,createGateway');
        expect((await run('npx', ['textgate', '--help'], { cwd: folder })).stdout).toContain('keys');
      },
      hostMs,
    );

    test(
      'is run by npx in an empty folder, where it answers with the demo and then writes a config',
      async () => {
        const folder = makeTemporaryFolder();
        const cache = makeTemporaryFolder();
        const { stdout: shared } = await run('npm', ['config', 'get', 'cache']);
        // What is downloaded is shared; what npx installs goes with the test.
        symlinkSync(join(shared.trim(), '_cacache'), join(cache, '_cacache'));
        const npx = (...args: readonly string[]) =>
          startTextgate(
            ['--yes', '--package', installed.tarball, 'textgate', ...args],
            folder,
            { npm_config_cache: cache, npm_config_prefer_offline: 'true', ...freePorts },
            { program: 'npx' },
          );
        const server = npx();
        const [, url = ''] = await server.printed(/ serves (\S+)\/v1 /);
        const [, key = ''] = await server.printed(/ (sk-tg-\S+)\n/);
        const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
        const messages = [{ role: 'user' as const, content: 'hello' }];
        const answer = await client.chat.completions.create({ model: 'demo', messages, stream: true });
        expect(await readAll(answer)).toMatch(/\w/);
        // npx does not pass signals on: it has started a shell, and that the gateway.
        let pid = server.pid ?? 0;
        for (let [child] = childrenOf(pid); child !== undefined; [child] = childrenOf(pid)) pid = child;
        process.kill(pid, 'SIGTERM');
        expect((await server.finished).code).toBe(0);

        playProvider(upstream);
        const { code, stderr } = await npx('init', '--upstream', upstream.url, '--model', 'tiny').finished;
        expect([code, stderr]).toEqual([0, '']);
        expect(readFileSync(join(folder, 'textgate.yaml'), 'utf8')).toContain(upstream.url);
      },
      installMs,
    );

    test(
      'does from code what its documentation shows',
      async () => {
        const { stdout } = await run(process.execPath, ['run-manage.ts'], { cwd: installed.folder });
        expect(stdout).toContain('my app 15.00 0');
      },
      hostMs,
    );

    test.each([
      ['node-http.ts', '/v1', 404],
      ['with-next.ts', '/v1', 418],
      ['common.cjs', '/v1', 404],
      ['express.ts', '/llm/v1', 404],
      ['express-with-parser.ts', '/llm/v1', 404],
      ['express4.ts', '/llm/v1', 404],
      ['express4-with-parser.ts', '/llm/v1', 404],
      ['fastify.ts', '/llm/v1', 404],
      ['hono.ts', '/llm/v1', 404],
      ['next.ts', '/v1', 404],
    ] as const)(
      'serves clients as %s does',
      async (file, base, statusElsewhere) => {
        const host = await installed.serve(file);
        try {
          await expectHostServes(host, base);
          expect((await fetch(`${host.origin}/elsewhere`)).status).toBe(statusElsewhere);
        } finally {
          await host.close();
        }
      },
      hostMs,
    );
  },
);

async function expectHostServes({ origin, key }: ServedHost, base: string): Promise<void> {
  const client = new OpenAI({ baseURL: origin + base, apiKey: key, maxRetries: 0 });
  const asked = { model: 'small', messages: [{ role: 'user' as const, content: 'hello' }] };
  const stream = { ...asked, stream: true } as const;

  upstream.play(sayTexts(['one ', 'two']));
  const whole = await client.chat.completions.create(asked);
  expect(whole.choices[0]?.message.content).toBe('one two');
  expect(await readAll(await client.chat.completions.create(stream))).toBe('one two');

  const stranger = new OpenAI({ baseURL: origin + base, apiKey: 'sk-wrong', maxRetries: 0 });
  await expect(stranger.chat.completions.create(asked)).rejects.toMatchObject({
    status: 401,
    code: 'invalid_api_key',
  });
  await expect(client.get('/nothing')).rejects.toMatchObject({ status: 404, code: 'unknown_url' });
  const withoutV1 = new OpenAI({ baseURL: origin + base.replace('/v1', ''), apiKey: key, maxRetries: 0 });
  await expect(withoutV1.models.list()).rejects.toThrow('/v1/models?');

  upstream.play((response) => {
    sendStream(response, chatFrames(['half']).slice(0, 2));
    setTimeout(() => cut(response, 'rst'), 50);
  });
  const broken = readLive(client.chat.completions.create(stream).asResponse());
  await broken.ended;
  expect(broken).toMatchObject({
    broken: true,
    text: expect.stringContaining('upstream_truncated') as string,
  });

  upstream.play((response) => void sendStream(response, chatFrames(['first']).slice(0, 2)));
  const before = upstream.aborted;
  for await (const chunk of await client.chat.completions.create(stream))
    if (chunk.choices[0]?.delta.content === 'first') break;
  await eventually('the upstream is stopped', () => upstream.aborted > before);
  upstream.play(sayTexts(['free again']));
  await eventually('the slot is free', async () => {
    const answer = await client.chat.completions.create(asked).catch((error: unknown) => error);
    return !(answer instanceof OpenAI.RateLimitError);
  });
}

async function readAll(chunks: AsyncIterable<OpenAI.Chat.Completions.ChatCompletionChunk>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? '';
  return text;
}
