import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { servicesRequired } from '../services.ts';

/** The first one is Chromium without what shows windows: it takes a third less of the processor. */
const found = [
  process.env['CHROMIUM'],
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((file) => file !== undefined && existsSync(file));

/** Why tests with a browser can't run here; `null` where they can, and where they must. */
export const browserAbsence =
  found === undefined && !servicesRequired ? 'needs Chromium; CHROMIUM names it' : null;

/** The browser calls no service of its vendor, and its own sandbox, which root can't have, is off. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts the browser of this machine, with a profile of its own that is removed at its end. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: found ?? 'chromium', args: flags });
}
