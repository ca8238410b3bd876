import { describe, expect, onTestFinished, test } from 'vitest';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
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
    expect(await page.locator('img').count()).toBe(0);
    await tabTo(page, page.getByRole('button', { name: 'Check this upstream' }));
    await page.keyboard.press('Enter');
    await page.getByText(/^Done: .* 1 with a fault/).waitFor();
    await checkAccessibility(page);
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

  test('explains to a read-only session that it can start no check', async () => {
    const { adminUrl } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, readOnlyToken);
    await page.goto(`${adminUrl}/console/#/upstreams/gone`);
    await page.getByText('a read-only session may not start one').waitFor();
    expect(await page.getByRole('button', { name: 'Check this upstream' }).count()).toBe(0);
  });
});
