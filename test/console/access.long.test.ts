import { describe, expect, onTestFinished, test } from 'vitest';
import { sessionMs } from '../../src/http/admin/access.ts';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login, loginButton, logoutButton, tokenField } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { startGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';

async function open() {
  const clock = createFakeClock();
  const gateway = await startGateway({ admin: { readOnlyToken }, clock });
  onTestFinished(() => gateway.close());
  return { ...gateway, clock };
}

describe.skipIf(browserAbsence !== null)(`access to the console (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('is had and given up by the keyboard alone, and both pages are accessible', async () => {
    const { adminUrl, adminToken } = await open();
    const { page } = await visit(adminUrl);
    await page.goto(consoleUrl(adminUrl));
    // The field has the focus from the beginning: an operator only types.
    await expect.poll(() => isFocused(tokenField(page))).toBe(true);
    await checkAccessibility(page);
    await page.keyboard.type(adminToken);
    await page.keyboard.press('Enter');
    await logoutButton(page).waitFor();
    expect(await tokenField(page).isVisible()).toBe(false);
    await checkAccessibility(page);
    await tabTo(page, logoutButton(page));
    await page.keyboard.press('Enter');
    await expect.poll(() => isFocused(tokenField(page))).toBe(true);
    expect(await tokenField(page).inputValue()).toBe('');
  });

  test('is refused for a wrong token, which is said, and the next one can be typed at once', async () => {
    const { adminUrl, adminToken } = await open();
    const { page, expectComplaint } = await visit(adminUrl);
    expectComplaint(/401 .*\/console\/session/);
    await page.goto(consoleUrl(adminUrl));
    await tokenField(page).fill('a wrong token');
    await tabTo(page, loginButton(page));
    await page.keyboard.press('Enter');
    const message = page.getByText('The admin token is missing or wrong.');
    await message.waitFor();
    // Screen readers read it aloud, wherever the focus is.
    expect(await page.getByRole('status').or(page.getByRole('alert')).allTextContents()).toContain(
      await message.textContent(),
    );
    await expect.poll(() => isFocused(tokenField(page))).toBe(true);
    expect(await tokenField(page).inputValue()).toBe('');
    await checkAccessibility(page);
    await page.keyboard.type(adminToken);
    await page.keyboard.press('Enter');
    await logoutButton(page).waitFor();
    expect(await message.isVisible()).toBe(false);
  });

  test('ends with the session: twelve hours after the login the page asks for the token again', async () => {
    const { adminUrl, adminToken, clock } = await open();
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    // A view that follows nothing: one that does would find the end before it is looked for.
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('table', { name: 'Keys, newest first' }).waitFor();
    clock.advance(sessionMs - 2_000);
    await page.reload();
    await logoutButton(page).waitFor();
    // All that the view reads is there: a read that is under way at the end is refused, of which the browser complains.
    await page.getByRole('table', { name: 'Keys, newest first' }).waitFor();
    clock.advance(2_000);
    await page.reload();
    await tokenField(page).waitFor();
    expect(await logoutButton(page).isVisible()).toBe(false);
    await tokenField(page).fill(adminToken);
    await page.keyboard.press('Enter');
    await logoutButton(page).waitFor();
  });

  test('ends in all windows with a logout in one of them', async () => {
    const { adminUrl, adminToken } = await open();
    const { page, context } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);
    const other = await context.newPage();
    await other.goto(consoleUrl(adminUrl));
    // What a page has asked for before a logout is answered first, so that no refusal of it is complained of.
    await other.getByText('Requests/s').waitFor();
    await page.getByText('Requests/s').waitFor();
    await logoutButton(other).click();
    await tokenField(other).waitFor();
    await page.reload();
    await tokenField(page).waitFor();
    expect(await context.cookies()).toEqual([]);
  });

  test('with the read-only token says that nothing can be changed', async () => {
    const { adminUrl } = await open();
    const { page, expectComplaint } = await visit(adminUrl);
    await login(page, adminUrl, readOnlyToken);
    await page
      .getByText(/read-only/)
      .filter({ visible: true })
      .first()
      .waitFor();
    await checkAccessibility(page);
    expectComplaint(/403 .*\/admin\/keys/);
    const asked = `{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"a key"}' }`;
    const status = await page.evaluate(`fetch('../admin/keys', ${asked}).then((answer) => answer.status)`);
    expect(status).toBe(403);
    await logoutButton(page).click();
    await tokenField(page).waitFor();
  });
});
