import { describe, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { browserAbsence } from '../support/browser/launch.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

/** A gateway with a request that does not end. */
async function open() {
  const upstream = await startUpstream();
  upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
  const gateway = await startGateway({ upstreamUrl: upstream.url });
  onTestFinished(async () => {
    await upstream.close();
    await gateway.close();
  });
  const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
  const running = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the stream has its first text', () => running.text.includes('one '));
  return gateway;
}

/** The most steps of the Tab key through a view. */
const maxSteps = 200;

/**
 * What is wrong with the element that has the focus, and whether it is one: it does not show the focus, is out of the window, or
 * lies below something else.
 */
const lookAtFocus = `(() => {
  const element = document.activeElement;
  if (element === document.body) return { isElement: false, fault: null };
  element.dataset.reached = '';
  const { outlineStyle } = getComputedStyle(element);
  const { left, top, right, bottom } = element.getBoundingClientRect();
  const [x, y] = [(left + right) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2];
  const above = document.elementFromPoint(Math.min(Math.max(x, 0), innerWidth - 1), y);
  const isSeen = above !== null && (element.contains(above) || above.contains(element));
  const fault = outlineStyle === 'none' ? 'does not show the focus' : isSeen ? null : 'is not seen';
  return { isElement: true, fault: fault && element.outerHTML.slice(0, 120) + ' ' + fault };
})()`;

/** What can be used with a mouse and was not reached. */
const lookForMissed = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
  .filter((element) => element.checkVisibility() && element.dataset.reached === undefined)
  .map((element) => element.outerHTML.slice(0, 120) + ' is not reached')`;

interface Focus {
  readonly isElement: boolean;
  readonly fault: string | null;
}

/** Goes through a view with a key, from the end of the page to its end again, and tells what is wrong. */
async function walk(page: Page, key: string): Promise<readonly string[]> {
  const faults: string[] = [];
  await page.evaluate(`document.activeElement.blur(); scrollTo(0, 0)`);
  for (let step = 0; step < maxSteps; step++) {
    await page.keyboard.press(key);
    const { isElement, fault } = (await page.evaluate(lookAtFocus)) as Focus;
    if (!isElement) return faults;
    if (fault !== null) faults.push(fault);
  }
  return [...faults, `the focus is still in the page after ${maxSteps} steps`];
}

/** Counts what screen readers are told from now on. */
const listen = `globalThis.told = [];
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const place = (target.closest ? target : target.parentElement)?.closest('[role=status], [role=alert], [role=log], [aria-live]');
      if (place) told.push(place.textContent);
    }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });`;

describe.skipIf(browserAbsence !== null)(`the keyboard alone (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('reaches all of every view, forth and back, where the focus is seen, and is caught nowhere', async () => {
    const gateway = await open();
    const { page } = await visit(gateway.adminUrl);
    await login(page, gateway.adminUrl, gateway.adminToken);
    const faults: string[] = [];
    const places = ['now', 'failures', 'latency', 'usage', 'usage/records', 'keys', 'keys/new', 'upstreams'];
    for (const place of [...places, 'upstreams/local', 'audit', 'try', 'search?q=small']) {
      await page.goto(`${gateway.adminUrl}/console/#/${place}`);
      await page.locator('main :is(tbody tr, .figure, .cards li, .empty, form)').first().waitFor();
      await page.waitForLoadState('networkidle').catch(() => {});
      for (const key of ['Tab', 'Shift+Tab'])
        faults.push(...(await walk(page, key)).map((fault) => `${place}, ${key}: ${fault}`));
      const missed = (await page.evaluate(lookForMissed)) as string[];
      faults.push(...missed.map((fault) => `${place}: ${fault}`));
    }
    expect(faults).toEqual([]);
  });

  test('is told nothing by a view that goes on by itself', async () => {
    const gateway = await open();
    const { page } = await visit(gateway.adminUrl);
    await login(page, gateway.adminUrl, gateway.adminToken);
    const age = page.getByRole('table', { name: 'Requests in progress' }).getByRole('cell').first();
    await age.waitFor();
    await page.evaluate(listen);
    for (let change = 0; change < 3; change++) {
      const before = await age.innerText();
      await expect.poll(() => age.innerText()).not.toBe(before);
    }
    expect(await page.evaluate('told')).toEqual([]);
  });

  test('takes no focus from who began to type before a view is shown', async () => {
    const { adminUrl, adminToken } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    for (const place of ['usage', 'upstreams/local']) {
      await page.evaluate(
        `location.hash = '#/${place}'; document.querySelector('[role=search] input').focus()`,
      );
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.waitForLoadState('networkidle');
      await page.keyboard.type('x');
    }
    expect(await page.getByRole('search').getByRole('searchbox').inputValue()).toBe('xx');
  });
});
