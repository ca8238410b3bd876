import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../src/cli/program.ts';
import { disconnectTable, settlementTable } from '../src/domain/money/settlement.ts';
import { writeConfigTables } from './support/config-tables.ts';
import { writeContractTables } from './support/contract-table.ts';
import { writeFaultTable } from './support/fault-table.ts';
import { compareSection } from './support/generated-section.ts';
import { anchorOf, headingsOf } from './support/page-contents.ts';
import { pageTexts } from './support/pages.ts';

const root = join(import.meta.dirname, '..');

/** How long the README may be, in lines: five minutes of reading. What is longer belongs in docs/. */
const maxReadmeLines = 200;

/** How wide a row of its tables may be, in characters: a wider one has to be scrolled, or wraps into a column of words. */
const maxReadmeColumns = 120;

describe('the documentation', () => {
  test('has the compatibility tables of the registry', () => {
    const { wanted, found } = compareSection('compatibility tables', writeContractTables());
    expect(found).toBe(wanted);
  });

  test('has the config keys of the schema', () => {
    const { wanted, found } = compareSection('config keys', writeConfigTables());
    expect(found).toBe(wanted);
  });

  test('has the settlement table by which requests are settled', () => {
    const disconnects = Object.entries(disconnectTable).map(
      ([rule, row]) => [`client_closed or cancelled, \`onDisconnect: ${rule}\``, row] as const,
    );
    const all = [...Object.entries(settlementTable), ...disconnects];
    const rows = all.map(
      ([outcome, { none, awaited, unsent, sent }]) =>
        `| ${outcome} | ${none} | ${awaited} | ${unsent} | ${sent} |`,
    );
    const head = [
      '| outcome | nothing had arrived | a whole answer was pending | reasoning had arrived, or text that was not sent on | text had been streamed |',
      '|---|---|---|---|---|',
    ];
    const { wanted, found } = compareSection('the settlement table', [...head, ...rows].join('\n'));
    expect(found).toBe(wanted);
  });

  test('has the table of faults in the words of the gateway', () => {
    const { wanted, found } = compareSection('faults of upstreams', writeFaultTable());
    expect(found).toBe(wanted);
  });

  test('lists every option of createGateway', () => {
    const source = readFileSync(join(root, 'src/gateway.ts'), 'utf8');
    const [, fields = ''] = /interface GatewayOptions \{([^]*?)\n\}/.exec(source) ?? [];
    const options = [...fields.matchAll(/readonly (\w+)\?:/g)].map(([, name]) => name);
    const [, table = ''] =
      /\| option \|([^]*?)\n\n/.exec(readFileSync(join(root, 'docs/middleware.md'), 'utf8')) ?? [];
    const listed = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
    expect(options.length).toBeGreaterThan(0);
    expect(listed).toEqual(options);
  });

  test('gives the reason for every dependency', () => {
    const text = readFileSync(join(root, 'README.md'), 'utf8');
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(dependencies)) expect(text).toMatch(new RegExp(`\\| ${name} \\| \\S`));
  });

  test('has a README that can be read in five minutes', () => {
    const lines = readFileSync(join(root, 'README.md'), 'utf8').split('\n');
    expect(lines.length).toBeLessThanOrEqual(maxReadmeLines);
    const wide = lines.filter((line) => line.startsWith('|') && line.length > maxReadmeColumns);
    expect(wide).toEqual([]);
  });

  test('names the file that npm pack makes', () => {
    const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      name: string;
      version: string;
    };
    const filesIn = (page: string): ReadonlySet<string> =>
      new Set(readFileSync(join(root, page), 'utf8').match(/[\w.-]+\.tgz/g));
    const packed = new Set([`${name}-${version}.tgz`]);
    expect(filesIn('README.md')).toEqual(packed);
    expect(filesIn('docs/middleware.md')).toEqual(packed);
  });

  test('has a row for every command', () => {
    const [, rows = ''] = readFileSync(join(root, 'docs/operators/command-line.md'), 'utf8').split(
      '| command |',
      2,
    );
    const [table = ''] = rows.split('\n\n', 1);
    const missing = createProgram()
      .commands.map((command) => command.name())
      .filter((name) => !table.includes(`\`${name}`));
    expect(missing).toEqual([]);
  });

  test('leads back to the README from every page', () => {
    const pages = pageTexts().filter(([path]) => path.startsWith('docs/'));
    expect(pages.length).toBeGreaterThan(5);
    const lost = pages.filter(([path, text]) => !text.includes(`](${relative(dirname(path), 'README.md')})`));
    expect(lost.map(([path]) => path)).toEqual([]);
  });

  test('has an index that leads to every page', () => {
    const index = readFileSync(join(root, 'docs/README.md'), 'utf8');
    const pages = pageTexts().map(([path]) => relative('docs', path));
    // Records of decisions have an index of their own, which test/docs/contributors.test.ts holds complete.
    const records = /^contributors\/decisions\/(?!README)/;
    const inDocs = pages.filter(
      (path) => !path.startsWith('..') && path !== 'README.md' && !records.test(path),
    );
    expect(inDocs.filter((path) => !index.includes(`](${path})`))).toEqual([]);
  });

  test('links only to files and headings that exist', () => {
    const links = pageTexts().flatMap(([path, text]) =>
      [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => ({ path, target })),
    );
    const inside = links.filter(({ target }) => !/^[a-z]+:/.test(target));
    expect(inside.length).toBeGreaterThan(50);
    expect(inside.filter(({ path, target }) => !isLinkGood(path, target))).toEqual([]);
  });
});

function isLinkGood(from: string, target: string): boolean {
  const [file = '', anchor] = target.split('#');
  const path = file === '' ? join(root, from) : join(root, dirname(from), file);
  if (!existsSync(path)) return false;
  return anchor === undefined || headingAnchors(readFileSync(path, 'utf8')).has(anchor);
}

/** The anchors of a page's headings. */
function headingAnchors(text: string): ReadonlySet<string> {
  return new Set(headingsOf(text).map((heading) => anchorOf(heading.text)));
}
