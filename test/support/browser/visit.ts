import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { browserAbsence, launchBrowser } from './launch.ts';
import { watchContext } from './complaints.ts';

/** How a visitor comes. */
export interface VisitOptions {
  readonly theme?: 'light' | 'dark';
  /** What the browser's clock says all the time, in milliseconds since 1970; its own time without it. */
  readonly nowMs?: number;
}

/** A page that is not the gateway's, and what the browser says of it. */
interface ForeignPage {
  readonly page: Page;
  readonly complaints: readonly string[];
}

/** A person with a browser: own cookies, and pages that share them. */
export interface Visit {
  readonly context: BrowserContext;
  /** The first page; it is empty. */
  readonly page: Page;
  /**
   * Says that the browser will complain of something, such as a refused request: the test fails if it does not. Every other
   * complaint fails the test.
   */
  readonly expectComplaint: (form: RegExp) => void;
  /** Opens a page that is not the gateway's, with the same cookies; what the browser says of it is collected alone. */
  readonly openForeignPage: (url: string) => Promise<ForeignPage>;
}

/** Windows have one size, and texts one language and one time zone, so that screenshots are the same anywhere. */
const settings: BrowserContextOptions = {
  viewport: { width: 1280, height: 800 },
  locale: 'en-US',
  timezoneId: 'UTC',
  reducedMotion: 'reduce',
};

/**
 * One browser for all tests of a file; each visit is a context of its own. A visit to an origin fails its test on everything
 * that the browser complains of, and on every request to another origin.
 */
export function useBrowser(): (origin: string, options?: VisitOptions) => Promise<Visit> {
  let browser: Browser | null = null;
  beforeAll(async () => {
    if (browserAbsence === null) browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  return async (origin, { theme = 'light', nowMs } = {}) => {
    if (browser === null) throw new Error('the browser is not open');
    const context = await browser.newContext({ ...settings, colorScheme: theme });
    const watch = watchContext(context, origin);
    onTestFinished(async () => {
      await context.close();
      watch.expectNoOthers();
    });
    if (nowMs !== undefined) await context.clock.setFixedTime(nowMs);
    return {
      context,
      page: await context.newPage(),
      expectComplaint: watch.expect,
      async openForeignPage(url) {
        const page = await context.newPage();
        const complaints = watch.setApart(page);
        await page.goto(url);
        return { page, complaints };
      },
    };
  };
}
