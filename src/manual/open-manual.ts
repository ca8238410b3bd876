import { readFile, readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Manual, ManualFile } from '../domain/ports/manual.ts';
import { renderInThread } from './render-in-thread.ts';
import type { Places } from './render-page.ts';
import { renderFound, splitSections } from './search-sections.ts';
import type { Section } from './search-sections.ts';
import { style, stylePath } from './style.ts';

/** The media types of the files that are served beside the pages. */
const types: Readonly<Record<string, string>> = {
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/**
 * Opens the documentation below a folder that has `README.md` and `docs`. Files are found among those that are there
 * at the first look, and never by joining a path, so that no path leads elsewhere. Pages are rendered when they are asked
 * for. A folder without documentation has no pages.
 */
export function openManual(root: URL): Manual {
  let listed: Promise<Places> | null = null;
  let sections: Promise<readonly Section[]> | null = null;
  return {
    async find(path) {
      if (path === stylePath) return { type: 'text/css; charset=utf-8', body: style };
      listed ??= listFiles(root);
      const places = await listed;
      const file = [...places].find(([, place]) => place === path)?.[0];
      return file === undefined ? null : readManualFile(root, file, places);
    },
    async search(text) {
      listed ??= listFiles(root);
      sections ??= readSections(root, await listed).catch((error: unknown) => {
        sections = null;
        throw error;
      });
      return { type: 'text/html; charset=utf-8', body: renderFound(await sections, text) };
    },
    movedTo: (path) => movedPages.get(path) ?? null,
  };
}

/** All pages in their sections: a megabyte, read at the first search. */
async function readSections(root: URL, places: Places): Promise<readonly Section[]> {
  const pages = [...places].filter(([file]) => posix.extname(file) === '.md');
  const texts = await Promise.all(
    pages.map(async ([file, place]) => splitSections(await readFile(new URL(file, root), 'utf8'), place)),
  );
  return texts.flat();
}

async function readManualFile(root: URL, file: string, places: Places): Promise<ManualFile> {
  const body = await readFile(new URL(file, root));
  const type = types[posix.extname(file)];
  if (type !== undefined) return { type, body };
  const html = await renderInThread({ markdown: body.toString('utf8'), file, places });
  return { type: 'text/html; charset=utf-8', body: html };
}

async function listFiles(root: URL): Promise<Places> {
  const inDocs = await readdir(fileURLToPath(new URL('docs', root)), { recursive: true }).catch(() => []);
  const files = ['README.md', ...inDocs.map((name) => `docs/${name.replaceAll('\\', '/')}`)];
  const served = files.filter((file) => file.endsWith('.md') || types[posix.extname(file)] !== undefined);
  return new Map(served.map((file) => [file, placeOf(file)]));
}

/** Where a browser finds a file, below the documentation's own path. */
function placeOf(file: string): string {
  if (file === 'docs/README.md') return '';
  if (file === 'README.md') return 'readme';
  return file.replace(/^docs\//, '').replace(/\.md$/, '');
}

/**
 * The names of pages that became sections of others, or moved, and where their texts are now: paths without `.md` below
 * the documentation, with an anchor where the page has more. Links and bookmarks that were kept still lead to the text.
 */
export const movedPages: ReadonlyMap<string, string> = new Map([
  ['operators/addresses', 'operators/network#client-addresses'],
  ['operators/budgets', 'operators/money#budgets'],
  ['operators/edge', 'operators/network#deadlines-and-sizes'],
  ['operators/environment', 'operators/config#environment-variables'],
  ['operators/health', 'operators/processes#readiness'],
  ['operators/listeners', 'operators/network#connection-limits'],
  ['operators/logs', 'operators/monitoring#logs'],
  ['operators/metrics', 'operators/monitoring#all-metrics'],
  ['operators/operating', '#operators-you-run-a-gateway'],
  ['operators/moving', 'operators/from-litellm'],
  ['operators/outbound', 'operators/upstreams#connections-to-upstreams'],
  ['operators/performance', 'contributors/performance'],
  ['operators/proxies', 'operators/network'],
  ['operators/records', 'operators/storage#old-records'],
  ['operators/rooms', 'operators/upstream-limits'],
  ['operators/scorecard', 'contributors/scorecard'],
  ['operators/shadow', 'operators/routing#shadow-traffic'],
  ['operators/sidecar', 'operators/container#beside-one-app'],
  ['operators/sizing', 'operators/install#sizing'],
  ['operators/status', 'operators/processes#status'],
  ['operators/usage', 'operators/money#usage'],
]);
