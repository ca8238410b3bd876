import { describe, expect, onTestFinished, test } from 'vitest';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { startGateway } from '../support/test-gateway.ts';

/** What each view says where it has nothing to show, as it is read: what is missing, and what to do. */
const states = [
  [
    'now',
    'There are no figures of this time. While a process runs, they come every ten seconds: wait, or choose another time.',
  ],
  ['now', 'No request is in progress. Try a model.'],
  ['failures', 'No request has failed in this time. Choose a longer one, or look at all requests of it.'],
  ['latency', 'No upstream has answered in this time. Choose a longer one, or try a model.'],
  [
    'usage',
    'No request has ended in this period. Choose another one, look at what runs now, or try a model.',
  ],
  ['usage/records', 'No request fits. Choose another time, or take away a filter.'],
  ['keys?status=revoked', 'No key is revoked. Show all keys.'],
  ['keys', 'There is no group. Keys that share a budget or slots are put into one of groups in the config.'],
  ['upstreams', 'No upstream has changed its state. Changes are listed here as they come.'],
  ['upstreams/gone', 'It may have been removed or renamed: look at all upstreams.'],
  ['audit?search=nothing', 'Nothing that was changed fits. Choose a longer time, or take the search away.'],
  ['search?q=nothing', 'Nothing has this text in its name. Of a request, enter the id'],
  ['search', 'Press / and enter a part of the name of a key, group, model or upstream'],
] as const;

describe.skipIf(browserAbsence !== null)(`a new gateway (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('has views that say what to do where there is nothing yet', async () => {
    const gateway = await startGateway();
    onTestFinished(() => gateway.close());
    const { page } = await visit(gateway.adminUrl);
    await page.goto(consoleUrl(gateway.adminUrl));
    await page.getByText('unless its config or TEXTGATE_ADMIN_TOKEN sets one.').waitFor();
    await login(page, gateway.adminUrl, gateway.adminToken);
    for (const [place, text] of states) {
      await page.goto(`${gateway.adminUrl}/console/#/${place}`);
      const read = async (): Promise<string> =>
        (await page.locator('.empty').allInnerTexts()).join(' ').replaceAll(/\s+/g, ' ');
      await expect.poll(read, { message: place }).toContain(text);
      await checkAccessibility(page);
    }
  });
});
