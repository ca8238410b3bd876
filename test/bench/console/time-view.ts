import type { BrowserContext, Page } from 'playwright-core';

/** How long a view took, from the navigation on, in milliseconds. */
export interface ViewTimes {
  /** Until its title and the first row, figure or field of it were there. */
  readonly usableMs: number;
  readonly firstPaintMs: number;
  /** The longest task of the page's thread until it was usable, and a second longer; 0 if none took 50 ms. */
  readonly longestTaskMs: number;
}

/** What counts as the first thing of use in a view. */
const useful = 'main :is(tbody tr, .figure, .cards li, .empty, form)';

/** Runs in each page before its own scripts: looks once a frame whether the view is usable, and notes long tasks. */
const observe = `
  globalThis.benchTimes = { usableMs: null, longestTaskMs: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries())
      benchTimes.longestTaskMs = Math.max(benchTimes.longestTaskMs, duration);
  }).observe({ type: 'longtask', buffered: true });
  const isSeen = (selector) =>
    [...document.querySelectorAll(selector)].some((element) => element.getClientRects().length > 0);
  const look = () => {
    if (isSeen('main h1') && isSeen(${JSON.stringify(useful)})) benchTimes.usableMs = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
`;

const results = `({
  ...benchTimes,
  firstPaintMs: performance.getEntriesByName('first-paint')[0]?.startTime ?? NaN,
})`;

/** Opens a view as a page of its own. */
export async function openView(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.addInitScript({ content: observe });
  await page.goto(url);
  await page.locator(useful).filter({ visible: true }).first().waitFor();
  return page;
}

/** Opens a view, measures it, and closes it. */
export async function timeView(context: BrowserContext, url: string): Promise<ViewTimes> {
  const page = await openView(context, url);
  await page.waitForTimeout(1_000);
  const times = (await page.evaluate(results)) as ViewTimes;
  await page.close();
  return times;
}
