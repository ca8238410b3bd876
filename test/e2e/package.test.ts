import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { servicesRequired } from '../support/services.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** How long packing, installing and compiling may take, in milliseconds. */
const timeoutMs = 180_000;

/** A typed app that mounts the gateway beside its own route. */
const app = `
import express from 'express';
import { createGateway } from 'textgate';
import type { Gateway } from 'textgate';

const gateway: Gateway = createGateway({
  storage: { url: 'sqlite::memory:' },
  upstreams: { demo: { url: 'demo:' } },
  models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
});
const app = express();
app.get('/mine', (_request, response) => void response.send('my own route'));
app.use('/llm', express.json(), gateway.router);
const server = app.listen(0, '127.0.0.1', async () => {
  const { port } = server.address() as { port: number };
  const { secret } = await gateway.createKey('mounted');
  const response = await fetch(\`http://127.0.0.1:\${port}/llm/v1/chat/completions\`, {
    method: 'POST',
    headers: { authorization: \`Bearer \${secret}\`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'packed?' }] }),
  });
  const mine = await (await fetch(\`http://127.0.0.1:\${port}/mine\`)).text();
  const elsewhere = await fetch(\`http://127.0.0.1:\${port}/other\`);
  console.log(JSON.stringify({ answer: await response.json(), mine, elsewhere: elsewhere.status }));
  server.close();
  await gateway.close();
});
`;

const tsconfig = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2024',
    strict: true,
    types: ['node'],
    skipLibCheck: false,
  },
  files: ['app.ts'],
};

describe('the packed package', () => {
  test.skipIf(!servicesRequired)(
    'installs, type-checks and runs inside another Express app (needs a package registry: REQUIRE_SERVICES=1)',
    async () => {
      const folder = makeTemporaryFolder();
      const { stdout: packed } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
        cwd: root,
      });
      const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf('['))) as [
        { filename: string; files: { path: string }[] },
      ];
      expect(files.map(({ path }) => path)).toEqual(
        expect.arrayContaining([
          'README.md',
          'docs/upstreams.md',
          'config/textgate.example.yaml',
          'config/textgate.schema.json',
        ]),
      );
      expect(files.filter(({ path }) => /^(src|test)\//.test(path))).toEqual([]);

      const { devDependencies: versions, dependencies } = JSON.parse(
        readFileSync(join(root, 'package.json'), 'utf8'),
      ) as Record<'devDependencies' | 'dependencies', Record<string, string>>;
      writeFileSync(join(folder, 'package.json'), '{"name":"scratch","private":true,"type":"module"}');
      await run(
        'npm',
        [
          'install',
          `./${filename}`,
          `express@${dependencies['express']}`,
          ...['typescript', '@types/node', '@types/express'].map((name) => `${name}@${versions[name]}`),
        ],
        { cwd: folder },
      );
      writeFileSync(join(folder, 'app.ts'), app);
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
      await run('npx', ['tsc'], { cwd: folder });
      const { stdout } = await run(process.execPath, ['app.js'], { cwd: folder });
      expect(JSON.parse(stdout)).toMatchObject({
        answer: { choices: [{ message: { content: expect.stringContaining('packed?') as string } }] },
        mine: 'my own route',
        elsewhere: 404,
      });

      const help = await run('npx', ['textgate', '--help'], { cwd: folder });
      expect(help.stdout).toContain('keys');
    },
    timeoutMs,
  );
});
