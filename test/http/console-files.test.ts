import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { openConsoleFiles } from '../../src/http/console/open-files.ts';
import { rewriteImports } from '../../src/http/console/rewrite-imports.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const packages = new Map([
  ['preact', 'vendor/preact.js'],
  ['preact/hooks', 'vendor/preact/hooks.js'],
]);

test.for([
  [`import { h } from 'preact';`, 'app.js', `import { h } from './vendor/preact.js';`],
  [`import{h as e}from"preact";`, 'vendor/preact/hooks.js', `import{h as e}from"../preact.js";`],
  [`export * from 'preact/hooks';`, 'vendor/other.js', `export * from './preact/hooks.js';`],
  [`import 'preact';`, 'app.js', `import './vendor/preact.js';`],
  [`await import("preact/hooks")`, 'app.js', `await import("./vendor/preact/hooks.js")`],
  [`import { a } from './views/now.ts';`, 'app.js', `import { a } from './views/now.js';`],
  [`import x from 'unknown'; from 'https://evil.example/x.ts'`, 'app.js', null],
  [`const from = 'preact'; // nothing is imported`, 'app.js', null],
] as const)('%s is rewritten in %s', ([text, path, expected]) => {
  expect(rewriteImports(text, path, packages)).toBe(expected ?? text);
});

/** The files of a folder that has some, and of a package beside it. */
function openFolder(files: Readonly<Record<string, string>>): ReturnType<typeof openConsoleFiles> {
  const [folder, beside] = [makeTemporaryFolder(), makeTemporaryFolder()];
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const module = join(beside, 'module.js');
  writeFileSync(module, 'export const h = 1;');
  const missing = pathToFileURL(`${join(beside, 'missing')}/`);
  return openConsoleFiles(
    [missing, pathToFileURL(`${folder}/`)],
    new Map([['view', () => pathToFileURL(module)]]),
  );
}

test('the files of the first folder with a page are served, those of packages below vendor/, and no others', async () => {
  const files = openFolder({
    'index.html': '<script src="./app.js"></script><a href="./none.js">',
    'app.ts': `import { h } from 'view';\nconst one: number = h;`,
    'types.d.ts': 'export {};',
    'notes.txt': 'notes',
  });
  const app = await files.find('app.js');
  expect(app?.file).toMatchObject({ type: 'text/javascript; charset=utf-8' });
  expect(app?.file.body).toMatch(/^import \{ h \} from '\.\/vendor\/view\.js';\nconst one +\s*= h;$/);
  expect((await files.find('vendor/view.js'))?.file.body).toBe('export const h = 1;');
  const others = ['app.ts', 'types.d.ts', 'types.d.js', 'notes.txt', 'index.html', '../module.js', 'view'];
  for (const path of others) expect(await files.find(path)).toBeNull();
  const page = (await files.find(''))?.file.body ?? '';
  const [, path = ''] = /src="(v-[\da-f]{16}\/app\.js)"/.exec(page) ?? [];
  expect(await files.find(path)).toMatchObject({ isImmutable: true, file: app?.file });
  expect(page).toContain('href="./none.js"');
});

test('the version changes with any file, so that no browser keeps an old one', async () => {
  const pageOf = async (text: string): Promise<string | undefined> =>
    (await openFolder({ 'index.html': '<script src="./a.js">', 'a.js': '1', 'b.js': text }).find(''))?.file
      .body;
  expect(await pageOf('2')).not.toBe(await pageOf('3'));
  expect(await pageOf('2')).toBe(await pageOf('2'));
});

test('files in folders are served below their folder, and find each other', async () => {
  const files = openFolder({
    'index.html': '<script src="./views/now.js"></script>',
    'views/now.ts': `import { h } from 'view';\nimport { a } from '../app.ts';`,
    'app.ts': 'export const a = 1;',
  });
  const now = await files.find('views/now.js');
  expect(now?.file.body).toBe(`import { h } from '../vendor/view.js';\nimport { a } from '../app.js';`);
  expect((await files.find(''))?.file.body).toMatch(/src="v-[\da-f]{16}\/views\/now\.js"/);
  for (const path of ['views/../app.js', 'views', 'views/', '/app.js'])
    expect(await files.find(path)).toBeNull();
});

test('a folder that has the files of packages needs no packages', async () => {
  const files = openFolder({ 'index.html': '', 'vendor/view.js': `import 'view';` });
  expect((await files.find('vendor/view.js'))?.file.body).toBe(`import './view.js';`);
});
