import { describe, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login, loginButton, tokenField } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const declaredKey = 'declared-6ZhY2vQw9TkR4mXcB7nLpS3d';
const scriptName = '<img src=x onerror="document.title=1">';

async function open() {
  const gateway = await startGateway({
    admin: { readOnlyToken },
    groups: { research: { concurrency: 20, budget: { amount: '100', per: 'month' } } },
    keys: { batch: { key: declaredKey } },
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Presses what is named, by the keyboard alone. */
async function press(page: Page, role: 'button' | 'link', name: string | RegExp): Promise<void> {
  await tabTo(page, page.getByRole(role, { name, ...(typeof name === 'string' ? { exact: true } : {}) }));
  await page.keyboard.press('Enter');
}

/** Types into a field that the Tab key leads to. */
async function type(page: Page, label: string, text: string): Promise<void> {
  await tabTo(page, page.getByLabel(label, { exact: true }));
  await page.keyboard.type(text);
}

async function openKeys(page: Page, adminUrl: string, token: string): Promise<void> {
  await login(page, adminUrl, token);
  await page.goto(`${consoleUrl(adminUrl)}#/keys`);
  await page.getByRole('table', { name: 'Keys, newest first' }).waitFor();
}

describe.skipIf(browserAbsence !== null)(`the keys of the console (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('are shown when a person goes to them the moment the console appears', async () => {
    const { adminUrl, adminToken } = await open();
    const { page } = await visit(adminUrl);
    await page.goto(consoleUrl(adminUrl));
    await page.evaluate(`new MutationObserver((_, observer) => {
      if (!document.body.textContent.includes('Log out')) return;
      observer.disconnect();
      location.hash = '#/keys';
    }).observe(document.body, { childList: true, subtree: true })`);
    await tokenField(page).fill(adminToken);
    await loginButton(page).click();
    await page.getByRole('table', { name: 'Keys, newest first' }).waitFor();
    expect(page.url()).toBe(`${consoleUrl(adminUrl)}#/keys`);
  });

  test('are made, credited and revoked by the keyboard alone, and a secret is shown once', async () => {
    const { url, adminUrl, adminToken } = await open();
    const { page, expectComplaint } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    await checkAccessibility(page);
    await press(page, 'link', 'Create key');
    await page.getByRole('heading', { name: 'Create key' }).waitFor();
    await checkAccessibility(page);
    await type(page, 'Name', scriptName);
    await type(page, 'Requests at once', 'many');
    // What the gateway refuses is said in its words, and what was typed stays.
    expectComplaint(/400 .*\/admin\/keys/);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: "'concurrency'" }).waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe(scriptName);
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('3');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: `The secret of ${scriptName}` });
    await dialog.waitFor();
    await checkAccessibility(page);
    const secret = (await dialog.getByText(/^sk-tg-/).textContent()) ?? '';
    const answer = await fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
    expect(await answer.json()).toMatchObject({ name: scriptName, limits: { concurrency: 3 } });
    // One press of Escape does not lose the secret.
    await page.keyboard.press('Escape');
    await dialog.getByText('Press Escape again to close').waitFor();
    expect(await dialog.getByText(secret).isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: scriptName }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await checkAccessibility(page);

    await press(page, 'button', 'Credit');
    await type(page, 'Amount in USD', '5.00');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: '$5.00 booked. The balance is $5.00.' }).waitFor();
    await press(page, 'button', `Revoke ${scriptName}`);
    await tabTo(page, page.getByRole('dialog').getByRole('button', { name: 'Revoke' }));
    await page.keyboard.press('Enter');
    await page.getByText('This key is revoked').waitFor();
    // No fault: operators revoke keys on purpose.
    await page.locator('.badge.plain', { hasText: 'revoked' }).waitFor();
    const refused = await fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
    expect(refused.status).toBe(401);
    expect(await page.title()).toBe('Keys – textgate');
  });

  test('are not changed over what another person has changed meanwhile, before one is told', async () => {
    const { adminUrl, adminToken, gateway } = await open();
    const { key: shared } = await gateway.createKey('shared');
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    await press(page, 'link', 'shared');
    await press(page, 'link', 'Edit');
    await page.getByRole('heading', { name: 'Edit shared' }).waitFor();
    await gateway.keys.update(shared.id, { requestsPerMinute: 7 });
    await type(page, 'Tags', 'search');
    await press(page, 'button', 'Save the changes');
    await page.getByRole('alert').filter({ hasText: 'Requests per minute is 7 now' }).waitFor();
    expect(await readKey(adminUrl, adminToken, shared.id)).toMatchObject({ tags: [] });
    await press(page, 'button', 'Save the changes');
    await page.getByRole('heading', { name: /^shared/ }).waitFor();
    expect(await readKey(adminUrl, adminToken, shared.id)).toMatchObject({
      tags: ['search'],
      limits: { requests_per_minute: 7 },
    });
  });

  test('are changed and rotated, and a payment is booked once', async () => {
    const { url, adminUrl, adminToken, key, gateway } = await open();
    const { key: other } = await gateway.createKey('other');
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    await press(page, 'link', 'other');
    await press(page, 'link', 'Edit');
    await page.getByRole('heading', { name: 'Edit other' }).waitFor();
    await type(page, 'Budget in USD', '20');
    await type(page, 'Tags', 'search');
    await press(page, 'button', 'Save the changes');
    await page.getByText('0 % of $20.00 a month').first().waitFor();
    const changed = await readKey(adminUrl, adminToken, other.id);
    expect(changed).toMatchObject({ tags: ['search'], budget: { amount: '20.00', time_zone: 'UTC' } });
    const booked = (said: string) => page.getByRole('status').filter({ hasText: said }).waitFor();
    for (const said of ['$2.00 booked.', 'invoice 7 was booked before: nothing was added.']) {
      await press(page, 'button', 'Credit');
      await type(page, 'Amount in USD', '2.00');
      await tabTo(page, page.getByLabel('Reference', { exact: true }));
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type('invoice 7');
      await page.keyboard.press('Enter');
      await booked(said);
    }
    expect(await readKey(adminUrl, adminToken, other.id)).toMatchObject({ balance: '2.00' });
    await press(page, 'button', 'Rotate');
    await press(page, 'button', 'Make a new secret');
    const secret =
      (await page
        .getByRole('dialog')
        .getByText(/^sk-tg-/)
        .textContent()) ?? '';
    expect(secret).not.toBe(key);
    const answer = await fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
    expect(await answer.json()).toMatchObject({ id: other.id });
    await press(page, 'button', 'I have copied it');
    await expect.poll(() => page.content()).not.toContain(secret);
  });

  test('have a time for retries to join, which is off where it is emptied', async () => {
    const { adminUrl, adminToken, gateway } = await open();
    const { id } = await gateway.keys.create({ name: 'impatient' });
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    await press(page, 'link', 'impatient');
    for (const [typed, shown, stored] of [
      ['10s', '10 s', 10_000],
      ['', 'off', null],
    ] as const) {
      await press(page, 'link', 'Edit');
      const field = page.getByLabel('Time for retries to join', { exact: true });
      await tabTo(page, field);
      await field.fill(typed);
      await press(page, 'button', 'Save the changes');
      const fact = page.getByText('time for retries to join', { exact: true });
      await expect.poll(() => fact.locator('xpath=following-sibling::*[1]').textContent()).toBe(shown);
      expect(await readKey(adminUrl, adminToken, id)).toMatchObject({ join_retries_ms: stored });
    }
  });

  test('show amounts to four digits, and all of them as a title', async () => {
    const { adminUrl, adminToken, gateway } = await open();
    const { id } = await gateway.keys.create({ name: 'payer' });
    await gateway.keys.credit(id, { amount: '4.964085162', reference: 'invoice 8' });
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    await press(page, 'link', 'payer');
    await page.getByRole('heading', { name: 'payer' }).waitFor();
    expect(await page.getByTitle('$4.964085162').first().textContent()).toBe('$4.964');
  });

  test('are found by a search, which is in the address, and those of the config say where they change', async () => {
    const { adminUrl, adminToken } = await open();
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    await type(page, 'Part of a name, or beginning of an id', 'BAT');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toContain('#/keys?search=BAT');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await press(page, 'link', 'batch');
    await page.getByText('change it there. Only its balance is changed here, by credits.').waitFor();
    expect(await page.getByRole('button', { name: 'Rotate' }).count()).toBe(0);
    const download = page.waitForEvent('download');
    await press(page, 'button', 'Download the statement');
    expect((await download).suggestedFilename()).toMatch(/^statement_key_\w{12}\.txt$/);
  });

  test('are found behind the first page, by their name and by their state', async () => {
    const { adminUrl, adminToken, gateway } = await open();
    const { id } = await gateway.keys.create({ name: 'oldest' });
    await gateway.keys.revoke(id);
    // Keys of the same millisecond stand in the order of their ids, which are random.
    const createdMs = Date.now();
    await eventually('the next millisecond', () => Date.now() > createdMs);
    for (let number = 0; number < 100; number++) await gateway.keys.create({ name: `newer ${number}` });
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, adminToken);
    const found = page.getByRole('link', { name: 'oldest', exact: true });
    expect(await found.count()).toBe(0);
    await page.getByLabel('State').selectOption('revoked');
    await found.waitFor();
    await page.goto(`${consoleUrl(adminUrl)}#/keys?search=OLD`);
    await found.waitFor();
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await page.getByLabel('State').selectOption('active');
    await page.getByText('No active key has this text in its name').waitFor();
    await page.goto(`${consoleUrl(adminUrl)}#/keys?status=expired`);
    await page.getByText('No key is expired.').waitFor();
    await checkAccessibility(page);
  });

  test('are only read by a read-only session', async () => {
    const { adminUrl } = await open();
    const { page } = await visit(adminUrl);
    await openKeys(page, adminUrl, readOnlyToken);
    await page.getByText('research').waitFor();
    expect(await page.getByRole('link', { name: 'Create key' }).count()).toBe(0);
    await press(page, 'link', 'batch');
    await page.getByText('This session is read-only').waitFor();
    await expect.poll(() => isFocused(page.getByRole('heading', { name: 'batch' }))).toBe(true);
    expect(await page.getByRole('button', { name: /Credit|Revoke|Rotate/ }).count()).toBe(0);
    await page.goto(`${consoleUrl(adminUrl)}#/keys/new`);
    await page.getByText('This session can change nothing').waitFor();
    await checkAccessibility(page);
  });
});

async function readKey(adminUrl: string, token: string, id: string): Promise<unknown> {
  const answer = await fetch(`${adminUrl}/admin/keys/${id}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return answer.json();
}
