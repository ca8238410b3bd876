import { describe, expect, onTestFinished, test } from 'vitest';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login, logOutElsewhere, tokenField } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const script = '<img src=x onerror=alert(1)>';

async function open() {
  const gateway = await startGateway({
    admin: { readOnlyToken },
    upstreams: { gone: { url: 'http://127.0.0.1:9/v1' } },
    routes: [{ upstream: 'gone', model: script }],
    policy: 'fastest',
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

describe.skipIf(browserAbsence !== null)(`the view Upstreams (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('shows a circuit that opens, and checks the upstream by the keyboard alone', async () => {
    const gateway = await open();
    const { adminUrl, adminToken } = gateway;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await tabTo(page, page.getByRole('link', { name: 'Upstreams' }));
    await page.keyboard.press('Enter');
    const log = page.getByRole('log', { name: 'Since you opened this page' });
    await page.getByText('circuit closed').first().waitFor();
    for (let failure = 0; failure < 5; failure++)
      await gateway.post('/v1/chat/completions', {
        model: 'small',
        messages: [{ role: 'user', content: 'hi' }],
      });
    await log.getByText('circuit opened').waitFor();
    await checkAccessibility(page);
    await tabTo(page, page.getByRole('link', { name: 'gone', exact: true }).first());
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: script }).waitFor();
    await page.getByRole('cell', { name: /^not known/ }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    await tabTo(page, page.getByRole('button', { name: 'Check this upstream' }));
    await page.keyboard.press('Enter');
    await page.getByText(/^Done: .* 1 with a fault/).waitFor();
    await checkAccessibility(page);
  });

  test('asks for a login when the session ends in another tab before the first check is done', async () => {
    const gateway = await open();
    const { adminUrl, adminToken } = gateway;
    const { page, context, expectComplaint } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    const { body: upstreams } = await askAdmin(gateway, 'GET', '/upstreams');
    // Cut off as the gateway does; on a connection that was used before, the browser itself would send it again.
    const end = Promise.withResolvers<void>();
    await page.route('**/admin/upstreams/gone/doctor', async (route) => {
      await end.promise;
      await route.abort('connectionreset');
    });
    // What the view asks by itself would find out, too, but about a second later.
    await page.route('**/admin/upstreams', (route) => route.fulfill({ json: upstreams }));
    await page.route('**/admin/status?*', async (route) => {
      if (route.request().headers()['accept'] !== 'text/event-stream') await route.continue();
    });
    await page.goto(`${consoleUrl(adminUrl)}#/upstreams/gone`);
    await tabTo(page, page.getByRole('button', { name: 'Check this upstream' }));
    await page.keyboard.press('Enter');
    await logOutElsewhere(context, adminUrl);
    expectComplaint(/ERR_CONNECTION_RESET/);
    expectComplaint(/401 .*\/admin\/status/);
    end.resolve();
    await tokenField(page).waitFor();
  });

  test('shows a circuit that opens while the upstream fails, and closes after it has answered again', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    onTestFinished(async () => {
      await gateway.close();
      await upstream.close();
    });
    const ask = async (): Promise<number> => {
      const body = { model: 'small', messages: [{ role: 'user', content: 'hi' }] };
      const answer = await gateway.post('/v1/chat/completions', body);
      await answer.text();
      return answer.status;
    };
    const { page } = await visit(gateway.adminUrl);
    await login(page, gateway.adminUrl, gateway.adminToken);
    await page.goto(`${gateway.adminUrl}/console/#/upstreams`);
    const log = page.getByRole('log', { name: 'Since you opened this page' });
    await page.getByText('circuit closed').first().waitFor();
    upstream.play((response) => sendJson(response, 503, '{"error":{"message":"busy"}}'));
    for (let failure = 0; failure < 5; failure++) expect(await ask()).toBeGreaterThanOrEqual(500);
    await log.getByText('circuit opened').waitFor();
    upstream.play(sayTexts(['well again']));
    await eventually('a trial is answered', async () => (await ask()) === 200);
    await log.getByText('circuit closed').waitFor();
    await page.getByText('ok', { exact: true }).first().waitFor();
  });

  test('shows shadow routes with their means, on a telephone, too', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway({
      upstreamUrl: upstream.url,
      upstreams: { other: { url: upstream.url } },
      shadow: {
        route: { upstream: 'other', model: `${script} with a long name` },
        share: 1,
        price: { input: '1', output: '2' },
        budgetPerDay: '10',
      },
    });
    onTestFinished(async () => {
      await gateway.close();
      await upstream.close();
    });
    upstream.play(sayTexts(['Hello', ' there']));
    await gateway.post('/v1/chat/completions', {
      model: 'small',
      messages: [{ role: 'user', content: 'hi' }],
    });
    await eventually('the answers are compared', async () => {
      const { body } = await askAdmin(gateway, 'GET', '/shadow');
      return body.data[0].means.pairs === 1;
    });
    const { page } = await visit(gateway.adminUrl);
    await page.setViewportSize({ width: 400, height: 800 });
    await login(page, gateway.adminUrl, gateway.adminToken);
    await page.goto(`${gateway.adminUrl}/console/#/upstreams`);
    const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'small' }) });
    await card.getByText('1 of 1 ended alike').waitFor();
    await card.getByText('$0.000025 of $10.00').waitFor();
    await card.getByRole('row', { name: /^characters 11 11 × 1\.00$/ }).waitFor();
    const ratio = await card.getByRole('columnheader', { name: 'Ratio' }).boundingBox();
    expect((ratio?.x ?? 400) + (ratio?.width ?? 0)).toBeLessThan(400);
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(400);
    await checkAccessibility(page);
  });

  test('reads a slow list to its end, and once more after a change', async () => {
    const gateway = await open();
    const { adminUrl, adminToken } = gateway;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    let asked = 0;
    const slow = Promise.withResolvers<void>();
    await page.route('**/admin/upstreams', async (route) => {
      asked += 1;
      if (asked > 1) return route.continue();
      // What it says is of the time before the change.
      const answer = await route.fetch();
      await slow.promise;
      return route.fulfill({ response: answer });
    });
    const broken: string[] = [];
    page.on('requestfailed', (request) => {
      if (request.url().endsWith('/admin/upstreams')) broken.push(request.url());
    });
    await page.goto(`${adminUrl}/console/#/upstreams`);
    await eventually('the list is asked for', () => asked === 1);
    await gateway.post('/v1/chat/completions', {
      model: 'small',
      messages: [{ role: 'user', content: 'hi' }],
    });
    // The status is sent once a second, and this page follows it, too.
    const follower = await page.context().newPage();
    await follower.goto(`${adminUrl}/console/#/now`);
    await follower.getByText('failing').first().waitFor();
    await follower.close();
    slow.resolve();
    // Sooner than the list is read without a change.
    await page.getByText('failing').first().waitFor({ timeout: 7_000 });
    expect(broken).toEqual([]);
  });

  test('explains to a read-only session that it can start no check', async () => {
    const { adminUrl } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, readOnlyToken);
    await page.goto(`${adminUrl}/console/#/upstreams/gone`);
    await page.getByText('a read-only session may not start one').waitFor();
    expect(await page.getByRole('button', { name: 'Check this upstream' }).count()).toBe(0);
  });
});
