import { createRequire } from 'node:module';
import type { PriceList } from './price-list.ts';

/** The version of `@pydantic/genai-prices` in `package.json`, and the day on which it was published. */
export const listVersion = { version: '0.1.8', publishedMs: Date.UTC(2026, 8, 23) };

/** How old a list may be before its operator is told, in milliseconds: 90 days. */
const maxAgeMs = 7_776_000_000;

/**
 * The list. It is loaded at the first call, which takes some 30 ms and 20 MB: most configs ask for none of it, and a config is
 * read without waiting.
 */
export function openPriceList(): PriceList {
  return (opened ??= loadPriceList());
}

let opened: PriceList | null = null;

function loadPriceList(): PriceList {
  const file = import.meta.url.endsWith('.ts') ? './price-list.ts' : './price-list.js';
  const { priceList } = createRequire(import.meta.url)(file) as { readonly priceList: PriceList };
  return priceList;
}

/** What is said of a list that is old; `null` for any other. */
export function describeAge(nowMs: number): string | null {
  const { version, publishedMs } = listVersion;
  if (nowMs - publishedMs <= maxAgeMs) return null;
  const day = new Date(publishedMs).toISOString().slice(0, 10);
  return `the list of prices is of ${day} (@pydantic/genai-prices ${version}): providers may have changed theirs since; a later version of textgate has a later list`;
}
