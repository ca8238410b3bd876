import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const images = join(import.meta.dirname, '..', '..', '..', 'docs', 'images');

/** The most that a picture may take, in bytes: they are part of the package. */
const maxBytes = 100_000;

/**
 * Writes what a page shows, in the light and in the dark, as `console-NAME-light.png` and `console-NAME-dark.png` with
 * `UPDATE_SCREENSHOTS=1`; otherwise throws unless both are there. Fonts differ from machine to machine, so nothing is compared.
 */
export async function screenshots(
  page: Page,
  name: string,
  { folder = images, isWritten = process.env['UPDATE_SCREENSHOTS'] === '1' } = {},
): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    const file = join(folder, `console-${name}-${theme}.png`);
    if (!isWritten) {
      if (!existsSync(file)) throw new Error(`${file} is missing: UPDATE_SCREENSHOTS=1 writes it`);
      continue;
    }
    await page.emulateMedia({ colorScheme: theme });
    const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    if (picture.length > maxBytes) throw new Error(`${file} would have ${picture.length} bytes`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, picture);
  }
  await page.emulateMedia({ colorScheme: null });
}
