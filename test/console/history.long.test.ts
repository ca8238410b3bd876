import { describe, expect, onTestFinished, test } from 'vitest';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { startGateway } from '../support/test-gateway.ts';

const minuteMs = 60_000;

describe.skipIf(browserAbsence !== null)(`the history of Now (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  async function open() {
    const gateway = await startGateway();
    onTestFinished(() => gateway.close());
    const { page } = await visit(gateway.adminUrl);
    return { gateway, page };
  }

  test('says which events are left out', async () => {
    const { gateway, page } = await open();
    await login(page, gateway.adminUrl, gateway.adminToken);
    await page.getByText(/events?, the dashed lines?$/).waitFor();
    expect(await page.getByText('There are too many events').filter({ visible: true }).count()).toBe(0);
    for (const [path, more] of [
      ['history', { marks_left_out: 1_234 }],
      ['audit', { next: '1' }],
    ] as const)
      await page.route(`**/admin/${path}?*`, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), ...more } });
      });
    await page.reload();
    await page.getByText('Left out: 1,234 events of processes, and what operators did before').waitFor();
    await checkAccessibility(page);
  });

  test('shows a part of the chart by the keyboard alone, and the focus stays where the time is chosen', async () => {
    const { gateway, page } = await open();
    await login(page, gateway.adminUrl, gateway.adminToken);
    await tabTo(page, page.getByLabel('Time', { exact: true }));
    await page.keyboard.type('Oth');
    const field = page.getByLabel('From', { exact: true });
    await tabTo(page, field);
    const fromOf = (): number => Date.parse(new URLSearchParams(page.url().split('?')[1]).get('from') ?? '');
    const before = fromOf();
    // Of the field's parts the minute is the fifth, behind the month, the day, the year and the hour.
    for (let part = 1; part < 5; part++) await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowUp');
    await expect.poll(fromOf).not.toBe(before);
    // The field has no milliseconds. Behind minute 59 comes minute 0 of the same hour.
    const moved = Math.round((fromOf() - before) / minuteMs);
    expect([1, -59]).toContain(moved);
    expect(await isFocused(field)).toBe(true);
    await page.locator('.chart canvas').waitFor();
    await checkAccessibility(page);
  });
});
