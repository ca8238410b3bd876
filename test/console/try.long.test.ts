import { describe, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login, logoutButton, logOutElsewhere, tokenField } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const name = '<img src=x onerror=alert(1)>';

async function open() {
  const upstream = await startUpstream();
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    otherModel: 'large',
    admin: { readOnlyToken },
  });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const { key } = await gateway.gateway.createKey(name);
  return { ...gateway, upstream, keyId: key.id };
}

const option = (page: Page, label: string) => page.getByLabel(label, { exact: true });

/** Goes to a button with the Tab key, and presses it. */
async function press(page: Page, label: string): Promise<void> {
  await tabTo(page, page.getByRole('button', { name: label, exact: true }));
  await page.keyboard.press('Enter');
}

describe.skipIf(browserAbsence !== null)(`trying a model (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('shows the answers and frames of both protocols, by the keyboard alone', async () => {
    const { adminUrl, adminToken, upstream } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await tabTo(page, page.getByRole('link', { name: 'Playground', exact: true }));
    await page.keyboard.press('Enter');
    // The request is the playground's own until a key is chosen, by the first letters of its text.
    await page.getByText('The playground’s own key is made with the first request').waitFor();
    await tabTo(page, option(page, 'Key'));
    await page.keyboard.type('<img');
    await tabTo(page, option(page, 'Question'));
    await page.keyboard.press('Control+a');
    await page.keyboard.type('a question in no address');
    upstream.play(sayTexts(['hello', ' there']));
    await page.keyboard.press('Control+Enter');
    await page.getByText('The answer is complete.').waitFor();
    expect(await page.getByRole('log').textContent()).toBe('hello there');
    await page.getByRole('cell', { name: '[DONE]' }).first().waitFor();
    expect(
      await page
        .getByRole('link', { name: /^…?\w+…?$/ })
        .last()
        .getAttribute('href'),
    ).toMatch(/^#\/usage\/req_/);
    await tabTo(page, option(page, 'Protocol'));
    await page.keyboard.type('Resp');
    await press(page, 'Send');
    await page.getByRole('cell', { name: 'response.completed', exact: true }).waitFor();
    expect(await page.getByRole('log').textContent()).toBe('hello there');
    await tabTo(page, option(page, 'Answer'));
    await page.keyboard.type('Whole');
    await press(page, 'Send');
    await page.getByRole('cell', { name: 'body', exact: true }).waitFor();
    expect(await page.getByRole('log').textContent()).toBe('hello there');
    expect(page.url()).toContain('protocol=responses');
    expect(page.url()).not.toContain('question');
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage])')).toBe('[{},{}]');
    expect(await page.getByRole('img').count()).toBe(0);
    await checkAccessibility(page);
  });

  test('stops a stream by Escape and by a logout, which its upstream sees', async () => {
    const { adminUrl, adminToken, upstream, keyId } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try?key=${keyId}`);
    const closed = Promise.withResolvers<void>();
    upstream.play((response) => {
      response.once('close', () => closed.resolve());
      sendStream(response, chatFrames(['one']).slice(0, 2));
    });
    await press(page, 'Send');
    await expect.poll(() => page.getByRole('log').textContent()).toBe('one');
    await page.keyboard.press('Escape');
    await page.getByText('Stopped.').waitFor();
    await closed.promise;
    // A logout stops it, too, before the gateway would.
    await press(page, 'Send');
    await page.getByText('Receiving…').waitFor();
    await logoutButton(page).click();
    await tokenField(page).waitFor();
    await expect.poll(() => upstream.running).toBe(0);
  });

  test('asks for a login when the session ends in another tab before the answer begins', async () => {
    const { adminUrl, adminToken, keyId } = await open();
    const { page, context, expectComplaint } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try?key=${keyId}`);
    // Cut off as the gateway does; on a connection that was used before, the browser itself would send it again.
    const end = Promise.withResolvers<void>();
    await page.route('**/admin/try/chat/completions?*', async (route) => {
      await end.promise;
      await route.abort('connectionreset');
    });
    await press(page, 'Send');
    await logOutElsewhere(context, adminUrl);
    expectComplaint(/ERR_CONNECTION_RESET/);
    expectComplaint(/401 .*\/admin\/status/);
    end.resolve();
    await tokenField(page).waitFor();
  });

  test('shows the code and the message of an error', async () => {
    const { adminUrl, adminToken, upstream, keyId } = await open();
    const { page, expectComplaint } = await visit(adminUrl);
    expectComplaint(/502 .*\/admin\/try/);
    await login(page, adminUrl, adminToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try?key=${keyId}`);
    upstream.play((response) => void response.writeHead(500).end('{}'));
    await press(page, 'Send');
    await expect
      .poll(() => page.getByRole('alert').allTextContents())
      .toContainEqual(expect.stringMatching(/^upstream_error: /));
  });

  test('shows an error as a caller gets it, and what the SDKs call it', async () => {
    const { adminUrl, adminToken, upstream } = await open();
    const { page, expectComplaint } = await visit(adminUrl);
    expectComplaint(/502 .*\/admin\/try/);
    await login(page, adminUrl, adminToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try`);
    upstream.play((response) => void response.writeHead(500).end('{}'));
    await press(page, 'Send');
    await page.getByText('What a caller gets').click();
    await page.getByText('InternalServerError').waitFor();
    expect(await page.getByLabel('What a caller gets').textContent()).toContain('"upstream_error"');
    await checkAccessibility(page);
  });

  test('needs no key, and has two models answer side by side', async () => {
    const { adminUrl, adminToken, upstream, gateway } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try`);
    upstream.play(sayTexts(['hello']));
    await option(page, 'Compare with').selectOption('large');
    expect(page.url()).toContain('with=large');
    await press(page, 'Send');
    await expect.poll(() => page.getByText('The answer is complete.').count()).toBe(2);
    for (const model of ['small', 'large'])
      expect(await page.getByLabel(`Text of the answer of ${model}`).textContent()).toBe('hello');
    expect(await page.getByText('Output tokens/s').count()).toBe(2);
    const [key] = (await gateway.keys.list({ search: 'playground' })).data;
    expect(key).toMatchObject({ name: 'playground', budget: { per: 'day' } });
    await checkAccessibility(page);
    await page.getByText('The same request as code').click();
    await option(page, 'Language').selectOption('python');
    await page.getByLabel('The same request as code', { exact: true }).getByText('from openai').waitFor();
  });

  test('keeps the latest of ten thousand frames, draws some of them and counts all', async () => {
    const { adminUrl, adminToken, upstream, keyId } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try?key=${keyId}`);
    upstream.play(sayTexts(Array.from({ length: 10_000 }, () => ' a')));
    await press(page, 'Send');
    await page.getByText('The answer is complete.').waitFor();
    // Drawn in parts: two thousand rows at once would stop the page for a second.
    await page.getByText(/^200 of 10,\d\d\d frames are shown, the latest ones/).waitFor();
    const rows = page.getByRole('table', { name: 'Frames of the answer' }).getByRole('row');
    expect(await rows.count()).toBe(201);
    await page.getByText('200 of 2,000 kept frames are shown.').waitFor();
    await press(page, 'Show more');
    expect(await rows.count()).toBe(701);
    for (let time = 0; time < 3; time++) await page.keyboard.press('Enter');
    // The last rows take the button away: the next key goes on behind it, not at the top of the page.
    const whole = page.getByText('2,000 of 2,000 kept frames are shown.');
    await expect.poll(() => isFocused(whole.locator('..'))).toBe(true);
    expect(await rows.count()).toBe(2_001);
    await tabTo(page, option(page, 'Filter frames'));
    await page.keyboard.type('DONE');
    await page.getByText('1 of 1 frames with this text').waitFor();
    expect((await page.getByRole('log').textContent())?.length).toBe(20_000);
  });

  test('is explained to a read-only session, and not offered', async () => {
    const { adminUrl } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, readOnlyToken);
    await page.goto(`${consoleUrl(adminUrl)}#/try`);
    await page.getByText('it needs the admin token').waitFor();
    expect(await page.getByRole('button', { name: 'Send' }).count()).toBe(0);
    await checkAccessibility(page);
  });
});
