import { describe, expect, onTestFinished, test } from 'vitest';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { startGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const scriptName = '<img src=x onerror=alert(1)>';
const dayMs = 86_400_000;

const ask = { model: 'small', messages: [{ role: 'user', content: 'hi' }] };

/** A gateway on which one key has spent twice as much as another, and the browser's clock a day later. */
async function open() {
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
  onTestFinished(() => gateway.close());
  const { secret } = await gateway.gateway.createKey(scriptName);
  for (const key of [gateway.key, secret, secret]) {
    const headers = { authorization: `Bearer ${key}` };
    const response = await gateway.post('/v1/chat/completions', ask, { headers });
    await response.text();
    expect(response.status).toBe(200);
  }
  await gateway.recorded();
  return { ...gateway, nowMs: Date.now() + dayMs };
}

describe.skipIf(browserAbsence !== null)(`the view Usage (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('leads from who spent most yesterday to one request, by the keyboard alone and read-only', async () => {
    const { adminUrl, nowMs } = await open();
    const { page } = await visit(adminUrl, { nowMs });
    await login(page, adminUrl, readOnlyToken);
    const link = page.getByRole('link', { name: 'Usage', exact: true });
    await tabTo(page, link);
    await page.keyboard.press('Enter');
    await page.getByText('No request of this time has ended.').waitFor();
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
    await checkAccessibility(page);
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
      expect.arrayContaining(['before it was sent', 'attempt 1: closed', 'attempt 2: local']),
    );
    expect(await page.getByRole('img', { name: 'x' }).count()).toBe(0);
    await checkAccessibility(page);
  });

  test('opens a request by the end of its id, and says what to do about one that is unknown', async () => {
    const { adminUrl, adminToken } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    const answer = await fetch(`${adminUrl}/admin/records?limit=1`, {
      headers: { authorization: `Bearer ${adminToken}` },
    });
    const { data } = (await answer.json()) as { data: { request_id: string }[] };
    const id = data[0]?.request_id ?? '';
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    const field = page.getByLabel('Request id');
    await field.fill('nothing');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'Enter a request id' }).waitFor();
    await field.fill(id.slice(-12));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `Request ${id}` }).waitFor();
    expect(page.url()).toContain(`#/usage/${id}`);
  });
});
