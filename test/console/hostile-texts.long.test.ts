import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { layoutFaults } from '../support/browser/layout.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

/** Markup that would run, marks that turn the direction of what follows, and letters that are written from the right. */
const markup = '"><img src=x onerror=alert(1)><script>alert(2)</script>';
const turned = '\u202Eelttil a\u2067';
const fromRight = '\u05D0\u05D1\u05D2 (1)';
const without = (count: number): string => 'W'.repeat(count);

/** The names of models that a provider offers, of which those with marks are left out, and its words for a request that fails. */
const models = [markup, fromRight, without(200)] as const;
const words = `${markup} ${turned} ${without(10_000)}`;

/** The longest that names may be. */
const keyName = `${markup}${turned}`.padEnd(100, 'W');
const group = without(64);
const tag = without(64);
const upstreamName = `${markup} ${turned} ${without(200)}`;

async function open() {
  const [upstream, broken] = [await startUpstream(), await startUpstream()];
  const listed = [...models, without(10_000), turned].map((id) => ({ id, object: 'model' }));
  const list = JSON.stringify({ object: 'list', data: listed });
  const storage = join(makeTemporaryFolder(), 'textgate.db');
  upstream.play((response, request) => {
    if (request.path.endsWith('/models')) return sendJson(response, 200, list);
    if (request.body.includes('stick')) return void sendStream(response, chatFrames([words]).slice(0, 2));
    if (!request.body.includes('fail')) return sayTexts([words])(response, request);
    return sendJson(response, 400, JSON.stringify({ error: { message: words, code: 'hostile' } }));
  });
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    discover: true,
    limits: { concurrency: 10 },
    storage,
    upstreams: { [upstreamName]: { url: broken.url } },
    groups: { [group]: { budget: { amount: '5', per: 'day' } } },
  });
  onTestFinished(async () => {
    await Promise.all([upstream.close(), broken.close()]);
    await gateway.close();
  });
  await eventually(
    'the models are known',
    async () => (await fetch(`${gateway.adminUrl}/readyz`)).status === 200,
  );
  const { body: key } = await askAdmin(gateway, 'POST', '/keys', { name: 'old', group, tags: [tag] });
  plant(key.key);
  // Keys of earlier versions may have names that are refused today.
  const database = new DatabaseSync(storage, { timeout: 5_000 });
  database.prepare('UPDATE api_keys SET name = ? WHERE id = ?').run(keyName, key.id);
  database.close();
  const changed = await askAdmin(gateway, 'PATCH', `/keys/${key.id}`, { models: [...models] });
  expect(changed.status).toBe(200);
  const headers = { authorization: `Bearer ${key.key}`, 'x-textgate-tag': tag };
  const ask = (model: string, content: string): Promise<Response> => {
    const body = { model, stream: true, messages: [{ role: 'user', content }] };
    return gateway.post('/v1/chat/completions', body, { headers });
  };
  for (const model of models)
    for (const content of ['answer', 'fail']) await (await ask(model, content)).text();
  await gateway.recorded();
  const stuck = await ask(models[2], 'stick');
  onTestFinished(() => void stuck.body?.cancel().catch(() => {}));
  return { gateway, keyId: String(key.id) };
}

describe.skipIf(browserAbsence !== null)(`texts of others (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('break no view and run no script: names of keys, groups, models, tags and upstreams, words of providers, the audit', async () => {
    const { gateway, keyId } = await open();
    const { page } = await visit(gateway.adminUrl);
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    await login(page, gateway.adminUrl, gateway.adminToken);
    const { body: failed } = await askAdmin(gateway, 'GET', '/records?limit=10');
    const ids: string[] = failed.data.map(({ request_id: id }: { request_id: string }) => id);
    const inPlace = encodeURIComponent;
    const places = [
      ['now', 'Requests in progress'],
      ['failures', 'hostile'],
      [`latency?one=${inPlace(`${models[2]} at local`)}`, 'All models and upstreams'],
      ...['key', 'model', 'upstream', 'group', 'tag'].map((by) => [`usage?by=${by}`, 'Share of charge']),
      [`usage?group=${group}&tag=${tag}&model=${inPlace(models[0])}`, 'Share of charge'],
      ['usage/records', 'completed'],
      ...ids.slice(0, 4).map((id) => [`usage/${id}`, 'What was asked']),
      ['keys', 'active'],
      [`keys/${keyId}`, 'Compatibility'],
      [`keys/${keyId}?edit=yes`, 'Compatibility'],
      ['upstreams', 'circuit'],
      ['upstreams/local', 'Place'],
      [`upstreams/${inPlace(upstreamName)}`, 'Routes'],
      ['audit', 'key changed'],
      [`search?q=${inPlace('<img')}`, 'Kind'],
      ['search?q=WWWW', 'Kind'],
      [`try?model=${inPlace(models[2])}&with=${inPlace(models[0])}&key=${keyId}`, 'Question'],
    ];
    const faults: string[] = [];
    for (const [place = '', text = ''] of places) {
      await page.goto(`${gateway.adminUrl}/console/#/${place}`);
      await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor();
      for (const summary of await page.locator('main summary').all()) await summary.click();
      for (const width of [390, 1_280]) {
        await page.setViewportSize({ width, height: 800 });
        const found = await layoutFaults(page);
        faults.push(...found.map((fault) => `${place.slice(0, 30)} at ${width}: ${fault}`));
      }
      const events = page.getByRole('table', { name: 'Events' });
      for (const said of await page.locator('main :is(bdi, h2, h3, option)').or(events).allInnerTexts())
        if (/[\u202E\u2067]/.test(said)) faults.push(`${place.slice(0, 30)}: a mark in a name is not shown`);
    }
    await page.goto(`${gateway.adminUrl}/console/#/audit`);
    await page.setViewportSize({ width: 1_300, height: 800 });
    const audit = page.getByRole('region', { name: 'Audit, newest first' });
    await audit.getByText('key changed').waitFor();
    const beyond = await audit.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    if (beyond > 0) faults.push(`the result of an act is ${beyond} pixels beyond the window`);
    await page.goto(`${gateway.adminUrl}/console/#/${places.at(-1)?.[0] ?? ''}`);
    await page.getByRole('button', { name: 'Send' }).click();
    const complete = page.getByText('The answer is complete.');
    for (const one of [complete.first(), complete.nth(1)]) await one.waitFor();
    faults.push(...(await layoutFaults(page)));
    expect(faults).toEqual([]);
    expect([dialogs, await page.locator('img, main script').count()]).toEqual([[], 0]);
  });
});
