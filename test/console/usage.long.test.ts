import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { layoutFaults } from '../support/browser/layout.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const scriptName = '<img src=x onerror=alert(1)>';
const dayMs = 86_400_000;

/** The hour in UTC at which the requests below were made. */
let hourOfRequests = '';

const ask = { model: 'small', messages: [{ role: 'user', content: 'hi' }] };

/** A gateway on which one key has spent twice as much as another, for all tests of this file. */
async function start() {
  const gateway = await startGateway({
    admin: { readOnlyToken },
    price: { input: '1', output: '2' },
    // The first route fails, so that requests have two attempts.
    upstreams: { closed: { url: 'http://127.0.0.1:9/v1' } },
    routes: [
      { upstream: 'closed', model: 'tiny' },
      { upstream: 'local', model: 'demo' },
    ],
  });
  const { secret } = await gateway.gateway.createKey(scriptName);
  for (const key of [gateway.key, secret, secret]) {
    const headers = { authorization: `Bearer ${key}` };
    const response = await gateway.post('/v1/chat/completions', ask, { headers });
    await response.text();
    expect(response.status).toBe(200);
  }
  hourOfRequests = new Date().toISOString().slice(11, 13);
  await gateway.recorded();
  return gateway;
}

describe.skipIf(browserAbsence !== null)(`the view Usage (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.close());

  test('leads from who spent most yesterday to one request, by the keyboard alone and read-only', async () => {
    const { adminUrl } = gateway;
    const { page } = await visit(adminUrl, { nowMs: Date.now() + dayMs });
    await login(page, adminUrl, readOnlyToken);
    const link = page.getByRole('link', { name: 'Usage', exact: true });
    await tabTo(page, link);
    await page.keyboard.press('Enter');
    await page.getByText('No request has ended in this period.').waitFor();
    await checkAccessibility(page);
    await tabTo(page, page.getByLabel('Time'));
    await page.keyboard.press('ArrowDown');
    // The key with the most comes first, and its name is a text.
    const rows = page.getByRole('table', { name: 'Usage by key' }).getByRole('row');
    const first = rows.nth(1).getByRole('rowheader').getByRole('link');
    await first.waitFor();
    expect(await first.textContent()).toBe(scriptName);
    expect(page.url()).toContain('range=yesterday');
    const charges = await Promise.all(
      [1, 2].map(async (row) => (await rows.nth(row).getByRole('cell').first().textContent()) ?? ''),
    );
    const [most = 0, least = 0] = charges.map((text) => Number(text.replace('$', '')));
    expect(most).toBeCloseTo(2 * least, 9);
    expect(least).toBeGreaterThan(0);
    await page.getByRole('img', { name: /^Charge per hour, by key/ }).waitFor();
    await tabTo(page, page.getByText('The figures of the chart'));
    await page.keyboard.press('Enter');
    // What the chart shows can be read, too: each hour of the day, and the sums of the keys in it.
    const figures = page.getByRole('table', { name: 'Charge per hour, by key' });
    await figures.waitFor();
    expect(await figures.getByRole('columnheader').allTextContents()).toEqual(['From', scriptName, 'test']);
    expect(await figures.getByRole('row').count()).toBe(25);
    const hour = figures.getByRole('row', { name: `${hourOfRequests}:00:00` });
    const sums = await hour.getByRole('cell').allTextContents();
    expect(sums.map((text) => Number(text.slice(1)))).toEqual([most, least]);
    await checkAccessibility(page);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as CSV' }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toMatch(/^usage-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d-by-key\.csv$/);
    const [titles, ...lines] = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split(/\r?\n/);
    expect(titles).toMatch(/^hour,key_id,key_name,/);
    expect(lines).toHaveLength(2);
    expect(lines.join('')).toContain(scriptName);
    await tabTo(page, first);
    await page.keyboard.press('Enter');
    const requests = page.getByRole('table', { name: 'Requests' }).getByRole('rowheader').getByRole('link');
    await requests.first().waitFor();
    expect(await requests.count()).toBe(2);
    await checkAccessibility(page);
    await tabTo(page, requests.first());
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /^Request req_/ }).waitFor();
    await page.getByText('connection refused').first().waitFor();
    const parts = page.getByRole('table', { name: "Parts of the request's time" }).getByRole('rowheader');
    expect(await parts.allTextContents()).toEqual(
      expect.arrayContaining(['queued', 'attempt 1: closed', 'attempt 2: local']),
    );
    expect(await page.getByRole('img', { name: 'x' }).count()).toBe(0);
    await checkAccessibility(page);
  });

  test('opens a request by the end of its id, and says what to do about one that is unknown', async () => {
    const { adminUrl, adminToken } = gateway;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    const answer = await fetch(`${adminUrl}/admin/records?limit=1`, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    const { data } = (await answer.json()) as { data: { request_id: string }[] };
    const id = data[0]?.request_id ?? '';
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    await page.keyboard.press('/');
    await page.keyboard.type('nothing');
    await page.keyboard.press('Enter');
    await page.getByText('Of a request, enter the id').waitFor();
    await checkAccessibility(page);
    await page.keyboard.press('/');
    await page.keyboard.type(id.slice(-12));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `Request ${id}` }).waitFor();
    expect(page.url()).toContain(`#/usage/${id}`);
  });

  test('finds keys, models and upstreams by a part of their names, and no secret gets into an address', async () => {
    const { adminUrl, adminToken, key } = gateway;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    const search = async (text: string): Promise<readonly string[]> => {
      await page.keyboard.press('/');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: text, exact: true }).waitFor();
      const found = page.getByRole('table', { name: 'Found' }).getByRole('rowheader');
      await found.first().waitFor();
      return found.allTextContents();
    };
    expect(await search('SMALL')).toEqual(['small']);
    expect(await search('oca')).toEqual(['local']);
    expect(await search('<img')).toEqual([scriptName]);
    await page.keyboard.press('/');
    await page.keyboard.type(key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `key_${key.slice(6, 18)}` }).waitFor();
    await page.getByRole('link', { name: 'test', exact: true }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('sk-another-secret');
    await page.keyboard.press('Enter');
    const alert = page.getByRole('alert').filter({ hasText: 'looks like a secret' });
    await alert.waitFor();
    expect(page.url()).not.toContain('sk-');
    // What it says lies above no other text or field, and goes with the search.
    for (const width of [390, 1_000, 1_300, 1_900]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await layoutFaults(page)).toEqual([]);
    }
    await page.keyboard.press('Escape');
    await alert.waitFor({ state: 'detached' });
    await page.keyboard.type('sk-another-secret');
    await page.keyboard.press('Enter');
    await alert.waitFor();
    await page.getByRole('link', { name: 'Failures' }).click();
    await page.getByRole('heading', { name: 'Failures', exact: true }).waitFor();
    expect(await alert.count()).toBe(0);
  });

  test('compares with the time before, and shows the share of each key', async () => {
    const { adminUrl, adminToken } = gateway;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await page.goto(`${adminUrl}/console/#/usage`);
    await page.getByText('none in the time before').first().waitFor();
    const rows = page.getByRole('table', { name: 'Usage by key' }).getByRole('row');
    await rows.nth(1).waitFor();
    expect(await rows.nth(1).getByRole('cell').allTextContents()).toEqual(
      expect.arrayContaining(['67%', 'new']),
    );
    await checkAccessibility(page);
  });

  test('leads on to older requests, and the focus is at their heading then', async () => {
    const { adminUrl, adminToken } = gateway;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    // Pages of one request each.
    await page.route('**/admin/records?*', (route) =>
      route.continue({ url: route.request().url().replace('limit=100', 'limit=1') }),
    );
    await page.goto(`${adminUrl}/console/#/usage/records`);
    const heading = page.getByRole('heading', { name: 'Requests, newest first' });
    await tabTo(page, page.getByRole('link', { name: 'Older' }));
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Newest' }).waitFor();
    await expect.poll(() => isFocused(heading)).toBe(true);
    // A choice keeps the focus, though it leads back to the newest ones.
    const outcome = page.getByLabel('Outcome', { exact: true });
    await tabTo(page, outcome);
    await page.keyboard.type('comp');
    await page.getByRole('link', { name: 'Newest' }).waitFor({ state: 'detached' });
    await expect.poll(() => page.getByRole('table', { name: 'Requests' }).getByRole('row').count()).toBe(2);
    await expect.poll(() => isFocused(outcome)).toBe(true);
    await page.getByRole('link', { name: '← Usage' }).click();
    await expect.poll(() => isFocused(page.getByRole('heading', { name: 'Usage', level: 1 }))).toBe(true);
  });
});
