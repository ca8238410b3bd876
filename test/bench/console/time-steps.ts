import type { Page } from 'playwright-core';

/** A step in a view: what a person does, and what is new on the page then. */
interface Step {
  readonly name: string;
  /** Where the view is before. */
  readonly place: string;
  readonly act: (page: Page) => Promise<unknown>;
  /** What the page shows anew once the step is done. */
  readonly result: string;
}

/** The text that a search looks for, which one line has: all are looked through. */
const searched = 'team 12345';

/** What has to be quick with much behind it. */
export const steps: readonly Step[] = [
  {
    name: 'a day of Now',
    place: '#/now',
    act: (page) => page.getByLabel('Time', { exact: true }).selectOption('24h'),
    result: '.chart canvas',
  },
  {
    name: 'an older page of Audit',
    place: '#/audit',
    act: (page) => page.getByRole('link', { name: 'Older' }).click(),
    result: 'tbody tr',
  },
  {
    name: 'a search of Audit',
    place: `#/audit?search=${encodeURIComponent('team 77')}`,
    act: async (page) => {
      await page.getByLabel('A key, a person or a value').fill(searched);
      await page.getByRole('button', { name: 'Search' }).click();
    },
    result: 'tbody tr',
  },
];

/**
 * Waits in the page for a click or a choice, and then, frame by frame, for what was not there before; tells how long it took
 * until that was painted, in milliseconds. The task behind a frame begins when it has been drawn.
 */
const watch = `(selector) => {
  const before = document.querySelector(selector);
  globalThis.stepTime = new Promise((resolve) => {
    let startedMs = null;
    const begin = (event) => (startedMs ??= event.timeStamp);
    for (const type of ['click', 'change']) addEventListener(type, begin, { capture: true });
    const look = () => {
      const found = document.querySelector(selector);
      if (startedMs === null || found === null || found === before) return requestAnimationFrame(look);
      const drawn = new MessageChannel();
      drawn.port1.onmessage = () => resolve(performance.now() - startedMs);
      drawn.port2.postMessage(null);
    };
    requestAnimationFrame(look);
  });
}`;

/** Does a step, and resolves with its time from the click until its result was painted, in milliseconds. */
export async function timeStep(page: Page, url: string, { place, act, result }: Step): Promise<number> {
  await page.goto('about:blank');
  await page.goto(url + place);
  await page.locator(result).first().waitFor();
  await page.evaluate(`(${watch})(${JSON.stringify(result)})`);
  await act(page);
  return (await page.evaluate('stepTime')) as number;
}
