import { existsSync, readFileSync } from 'node:fs';

/** Whether it runs in a checkout, from its sources or a bundle of them, which is as deep: package and image have none. */
export const isCheckout = existsSync(new URL('../../src/main.ts', import.meta.url));

/**
 * The package's version; `unknown` where an app's bundler has left package.json behind. That file is two folders above this
 * one, in a checkout, in the package and in the bundle.
 */
export function readVersion(): string {
  try {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  } catch {
    return 'unknown';
  }
}
