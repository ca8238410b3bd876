import { posix } from 'node:path';

/** An import or export of a module, up to the name of the module in quotes. */
const importForm = /((?:\bfrom|\bimport)\s*\(?\s*)(["'])([^"'\n]+)\2/g;

/**
 * Rewrites the imports of a module for browsers, which know neither packages nor TypeScript: the name of a package becomes
 * the way to its file, and `./name.ts` becomes `./name.js`. `path` is the module's own, `packages` has the paths of packages by
 * their names. Other names stay as they are.
 */
export function rewriteImports(text: string, path: string, packages: ReadonlyMap<string, string>): string {
  return text.replaceAll(importForm, (whole, start: string, quote: string, name: string) => {
    const target = packages.get(name);
    if (target !== undefined) return `${start}${quote}${relativeTo(path, target)}${quote}`;
    return /^\.\.?\/.*\.ts$/.test(name) ? `${start}${quote}${name.replace(/ts$/, 'js')}${quote}` : whole;
  });
}

/** The path of a package's file by the name under which it is imported: a module, unless the name ends as a style. */
export function vendorPath(name: string): string {
  return name.endsWith('.css') ? `vendor/${name}` : `vendor/${name}.js`;
}

/** The way from one module to another one, as an import needs it. */
function relativeTo(from: string, to: string): string {
  const way = posix.relative(posix.dirname(from), to);
  return way.startsWith('.') ? way : `./${way}`;
}
