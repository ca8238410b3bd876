import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { listFiles, page } from './list-files.ts';
import { rewriteImports, vendorPath } from './rewrite-imports.ts';

/** The media types of the files that are served. */
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The length of versions and tags in hexadecimal digits: enough that two contents do not share one. */
const digestLength = 16;

/** A file of the console, as a browser gets it. */
interface ConsoleFile {
  readonly type: string;
  readonly body: string;
  readonly etag: string;
}

/** The place of each file of a package by the name under which it is imported; a style has its ending in the name. */
export type PackageFiles = ReadonlyMap<string, () => URL>;

/** The files of the console. */
export interface ConsoleFiles {
  /**
   * Finds a file by its path below the console's, exactly as the browser wrote it: nothing is decoded and no path is
   * joined, so none leads elsewhere. `isImmutable`: the path has the version of its content, and may be kept for ever.
   */
  find(path: string): Promise<{ readonly file: ConsoleFile; readonly isImmutable: boolean } | null>;
}

/**
 * Opens the files of the first of some folders that has the console's page; they are read at the first look and kept.
 * `packages` finds files of packages by the names under which they are imported: they are served below `vendor/`, and a
 * folder that has them there needs no packages. In a checkout the modules are TypeScript, whose types are stripped here; a
 * package and an image have them as JavaScript.
 */
export function openConsoleFiles(folders: readonly URL[], packages: PackageFiles = new Map()): ConsoleFiles {
  let reading: ReturnType<typeof readFiles> | null = null;
  return {
    async find(path) {
      reading ??= readFiles(folders, packages).catch((error: unknown) => {
        reading = null;
        throw error;
      });
      const { version, files } = await reading;
      const [, asked, rest] = /^v-([\da-f]+)\/(.+)$/.exec(path) ?? [];
      // A page of another version, such as that of another node during an upgrade, gets the files that are here.
      const file = files.get(rest ?? path);
      return file === undefined ? null : { file, isImmutable: asked === version };
    },
  };
}

async function readFiles(folders: readonly URL[], packages: PackageFiles) {
  const vendor = new Map([...packages.keys()].map((name) => [name, vendorPath(name)]));
  const places = new Map(await listFiles(folders));
  for (const [name, find] of packages) {
    const path = vendorPath(name);
    if (!places.has(path)) places.set(path, find());
  }
  const texts = new Map<string, string>();
  for (const [name, url] of places) {
    if (!isServed(name)) continue;
    const path = name.replace(/\.ts$/, '.js');
    const text = await readFile(url, 'utf8');
    texts.set(path, rewriteImports(path === name ? text : await withoutTypes(text), path, vendor));
  }
  // Changes with any of the files.
  const version = digest(JSON.stringify([...texts].toSorted(([a], [b]) => (a < b ? -1 : 1))));
  const files = [...texts].map(([path, text]) => {
    const body = path === page ? withVersion(text, version, texts) : text;
    const file: ConsoleFile = { type: types[extname(path)] ?? '', body, etag: `"${digest(body)}"` };
    return [path === page ? '' : path, file] as const;
  });
  return { version, files: new Map(files) };
}

/** A source for the browser without its types. Older versions of Node can't strip them, and must get as far as to say so. */
async function withoutTypes(text: string): Promise<string> {
  const { stripTypeScriptTypes } = await import('node:module');
  return stripTypeScriptTypes(text);
}

function isServed(name: string): boolean {
  return types[extname(name)] !== undefined || (name.endsWith('.ts') && !name.endsWith('.d.ts'));
}

/** The page, with the version in the paths of its files, so that browsers keep them as long as they are the same. */
function withVersion(html: string, version: string, files: ReadonlyMap<string, string>): string {
  return html.replaceAll(/(src|href)="\.\/([\w./-]+)"/g, (whole, attribute: string, name: string) =>
    files.has(name) ? `${attribute}="v-${version}/${name}"` : whole,
  );
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digestLength);
}
