import { describe, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { systemClock } from '../../src/composition/clock.ts';
import { askAdmin } from '../support/admin-client.ts';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { countEmptyCharts, layoutFaults } from '../support/browser/layout.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { login } from '../support/browser/login.ts';
import { screenshots } from '../support/browser/screenshots.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { plant } from '../support/canaries.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** The time that the gateway and the browser have; the records begin a day before. */
const nowMs = Date.parse('2026-10-24T10:00:00Z');
const dayMs = 86_400_000;
const minuteMs = 60_000;

/** The window in pictures: large ones would take too much of the package. */
const pictureSize = { width: 1_024, height: 640 };

/** The windows that a view has to fit: a telephone, one at 200 % (its pixels are halved), a usual one, and a wide one. */
const telephone = { width: 390, height: 800 };
const usual = { width: 1_280, height: 800 };
const sizes = [telephone, { width: 640, height: 400 }, usual, { width: 2_560, height: 1_300 }];

/** What a place shows once it is there. */
const something = 'main :is(tbody tr, .figure, .cards li, .empty, form)';

const keys = [
  { name: 'checkout', group: 'shop', budget: { amount: '5', per: 'day', warnAt: ['0.5'] } },
  { name: 'search', group: 'shop', tags: ['ranking', 'suggestions'] },
  { name: 'nightly report', balance: '20' },
  { name: 'an intern', group: 'lab', budget: { amount: '0.0001', per: 'month' } },
] as const;

/** A gateway with records of two days, a request in progress, and upstreams of which one fails. */
async function open(): Promise<TestGateway> {
  const [good, bad] = [await startUpstream(), await startUpstream()];
  let atMs = nowMs - dayMs;
  const gateway = await startGateway({
    upstreamUrl: good.url,
    upstreams: { spare: { url: bad.url, apiKey: 'sk-another-upstream-secret' } },
    routes: [
      { upstream: 'spare', model: 'tiny', weight: 1 },
      { upstream: 'local', model: 'tiny', weight: 1 },
    ],
    clock: { ...systemClock, now: () => atMs },
    price: { input: '1', output: '2' },
    groups: {
      shop: { concurrency: 8, budget: { amount: '50', per: 'month' } },
      lab: { concurrency: 2 },
    },
    limits: { requestsPerMinute: 1_000_000 },
  });
  onTestFinished(async () => {
    await Promise.all([good.close(), bad.close()]);
    await gateway.close();
  });
  good.play(sayTexts(['A short ', 'answer.']));
  bad.play((response) =>
    sendJson(response, 401, '{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}'),
  );
  const secrets: string[] = [];
  for (const key of keys) {
    const { status, body } = await askAdmin(gateway, 'POST', '/keys', key);
    expect(status).toBe(201);
    plant(body.key);
    secrets.push(body.key);
  }
  const ask = (secret: string, stream: boolean): Promise<Response> => {
    const body = {
      model: 'small',
      stream,
      max_tokens: 10,
      messages: [{ role: 'user', content: 'x' }],
    };
    return gateway.post('/v1/chat/completions', body, {
      headers: { authorization: `Bearer ${secret}` },
    });
  };
  for (const day of [1, 0]) {
    atMs = nowMs - day * dayMs - minuteMs;
    for (const [index, secret] of secrets.entries())
      for (let round = 0; round <= 2 * index; round++) await (await ask(secret, round % 2 === 0)).text();
  }
  atMs = nowMs;
  const from = new Date(nowMs - 2 * minuteMs).toISOString();
  await eventually(
    'the history has the minute of the requests',
    async () => (await askAdmin(gateway, 'GET', `/history?from=${from}`)).body.points.length > 0,
  );
  // Refused requests are added to their sums every five seconds.
  await eventually(
    'the refused requests are added',
    async () => (await askAdmin(gateway, 'GET', '/failures')).body.refusals.by_key.length > 0,
  );
  good.play((response) => void sendStream(response, chatFrames(['A long ']).slice(0, 2)));
  const running = readLive(ask(secrets[1] ?? '', true));
  await eventually('the stream has its first text', () => running.text.includes('A long '));
  return gateway;
}

/** The views by the words of their links. */
async function viewsOf(page: Page): Promise<readonly string[]> {
  const links = page.getByRole('navigation', { name: 'Views' }).getByRole('link');
  return (await links.allInnerTexts()).map((text) => text.trim());
}

/** Opens a view by its link, and resolves when it shows something. */
async function openView(page: Page, view: string): Promise<void> {
  await page
    .getByRole('navigation', { name: 'Views' })
    .getByRole('link', { name: view, exact: true })
    .click();
  await page.getByRole('heading', { level: 1, name: view, exact: true }).waitFor();
  await page.locator(something).filter({ visible: true }).first().waitFor();
}

describe.skipIf(browserAbsence !== null)(`a tour of the console (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('every view is accessible in both themes, fits any window, and is drawn', async () => {
    const gateway = await open();
    const { page } = await visit(gateway.adminUrl, { nowMs });
    await login(page, gateway.adminUrl, gateway.adminToken);
    const views = await viewsOf(page);
    expect(views.length).toBeGreaterThanOrEqual(5);
    const faults: string[] = [];
    for (const view of views) {
      await openView(page, view);
      faults.push(...(await faultsIn(page, view)));
      await page.setViewportSize(pictureSize);
      await screenshots(page, view.toLowerCase()).catch((error: unknown) => faults.push(String(error)));
    }
    const { body: records } = await askAdmin(gateway, 'GET', '/records?limit=1');
    const { body: keyList } = await askAdmin(gateway, 'GET', '/keys');
    const places = [
      'failures?time=30d',
      `usage/${records.data[0].request_id}`,
      'usage/records',
      `keys/${keyList.data[0].id}`,
      `keys/${keyList.data[0].id}?edit=yes`,
      'keys/new',
      'upstreams/spare',
      'search?q=s',
    ];
    for (const place of places) {
      await page.goto(`${gateway.adminUrl}/console/#/${place}`);
      await page.locator(something).filter({ visible: true }).first().waitFor();
      faults.push(...(await faultsIn(page, place)));
    }
    expect(faults).toEqual([]);
  });
});

/** What is wrong with a place in windows of several widths: a telephone, a window at twice its size, and a wide one. */
async function faultsIn(page: Page, place: string): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const { width, height } of sizes) {
    await page.setViewportSize({ width, height });
    const alerts = await page.getByRole('alert').filter({ visible: true }).allInnerTexts();
    const found = [...(await layoutFaults(page)), ...alerts];
    faults.push(...found.map((fault) => `${place} at ${width}: ${fault}`));
    if ((await countEmptyCharts(page)) > 0) faults.push(`${place} at ${width}: nothing is drawn in a chart`);
  }
  for (const { width, height } of [telephone, usual]) {
    await page.setViewportSize({ width, height });
    await checkAccessibility(page).catch((error: unknown) =>
      faults.push(`${place} at ${width}: ${String(error)}`),
    );
  }
  return faults;
}
