import { describe, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { startLoad } from '../support/background-load.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

/** Keys of the load, and how many of its streams stay open all the time. */
const loadKeys = 10;
const heldStreams = 40;

/** A question whose answer costs more than all requests of the load. */
const dear = 'a dear one '.repeat(20_000);

const bodyOf = (stream: boolean, content: string): string =>
  JSON.stringify({ model: 'small', stream, messages: [{ role: 'user', content }] });

/** Streams whose question asks for it say one word, and never anything more; all others are answered. */
const answers: Script = (response, request) => {
  if (request.body.includes('stay here')) return void sendStream(response, chatFrames(['one ']).slice(0, 2));
  if (!request.body.includes('a dear one')) return sayTexts(['hello', ' there'])(response, request);
  const frames = chatFrames(['hello']).map((frame) =>
    frame.replace('"prompt_tokens":11', '"prompt_tokens":100000'),
  );
  sendStream(response, frames).end();
};

async function open() {
  const [first, second] = [await startUpstream(), await startUpstream()];
  first.play(answers);
  second.play(answers);
  const gateway = await startGateway({
    upstreamUrl: second.url,
    upstreams: { first: { url: first.url } },
    routes: [
      { upstream: 'first', model: 'tiny' },
      { upstream: 'local', model: 'tiny' },
    ],
    price: { input: '1', output: '2' },
    limits: { concurrency: 100, requestsPerMinute: 1_000_000 },
  });
  const makeKey = async (name: string): Promise<string> => (await gateway.gateway.createKey(name)).secret;
  const secrets = await Promise.all(Array.from({ length: loadKeys }, (_, n) => makeKey(`load ${n}`)));
  const stream = (secret: string, content: string): LiveAnswer =>
    readLive(
      gateway.post('/v1/chat/completions', JSON.parse(bodyOf(true, content)), {
        headers: { authorization: `Bearer ${secret}` },
      }),
    );
  const held = Array.from({ length: heldStreams }, (_, n) =>
    stream(secrets[n % loadKeys] ?? '', 'stay here'),
  );
  await eventually('the streams are open', () => held.every(({ text }) => text.includes('one ')));
  const load = startLoad({ url: gateway.url, secrets, body: (isStream) => bodyOf(isStream, 'hi') });
  onTestFinished(async () => {
    await load.stop();
    await Promise.all([first.close(), second.close()]);
    await gateway.close();
  });
  return { ...gateway, first, load, held, makeKey, stream };
}

/** Opens a view, and waits for its heading. */
async function openView(page: Page, adminUrl: string, view: string, heading: string): Promise<void> {
  await page.goto(`${consoleUrl(adminUrl)}#/${view}`);
  await page.getByRole('heading', { name: heading, exact: true }).waitFor();
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

describe.skipIf(browserAbsence !== null)(`the console under load (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('tells each story while 40 streams are open and other requests come all the time', async () => {
    const scene = await open();
    const { url, adminUrl, adminToken, first, load, held, makeKey } = scene;
    const [nightly, large] = [await makeKey('nightly report'), await makeKey('large texts')];
    const stuck = scene.stream(nightly, 'stay here');
    await scene.stream(large, dear).ended;
    const { page } = await visit(adminUrl);
    await login(page, adminUrl, adminToken);

    // A stream that is stuck is found among the others, and cancelled.
    const rows = page.getByRole('table', { name: 'Requests in progress' }).getByRole('row');
    await page.getByLabel('Filter').fill('nightly');
    await rows.filter({ hasText: 'nightly report' }).getByRole('button').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).click();
    await stuck.ended;
    expect(stuck.text).toContain('request_cancelled');
    await page.getByText('No request in progress has this text.').waitFor();

    // A circuit opens, and closes again; the other route answers meanwhile.
    await openView(page, adminUrl, 'upstreams', 'Upstreams');
    const log = page.getByRole('log', { name: 'Since you opened this page' });
    await page.getByText('circuit closed').first().waitFor();
    first.play((response) => sendJson(response, 503, '{"error":{"message":"busy"}}'));
    await log.getByText('circuit opened').waitFor();
    first.play(answers);
    await log.getByText('circuit closed').waitFor();

    // A key is made, credited, shown once and revoked.
    await openView(page, adminUrl, 'keys/new', 'Create key');
    await page.getByLabel('Name', { exact: true }).fill('made under load');
    await page.keyboard.press('Enter');
    const secret =
      (await page
        .getByRole('dialog')
        .getByText(/^sk-tg-/)
        .textContent()) ?? '';
    await button(page, 'I have copied it').click();
    await button(page, 'Credit').click();
    await page.getByLabel('Amount in USD', { exact: true }).fill('5.00');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'The balance is $5.00.' }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await button(page, 'Revoke made under load').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('This key is revoked').waitFor();
    const refused = await fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
    expect(refused.status).toBe(401);

    // A model is tried in both protocols.
    const { id } = await scene.gateway.keys.create({ name: 'tried out' });
    for (const protocol of ['chat', 'responses']) {
      await openView(page, adminUrl, `try?key=${id}&protocol=${protocol}`, 'Playground');
      await button(page, 'Send').click();
      await page.getByText('The answer is complete.').waitFor();
      expect(await page.getByRole('log').textContent()).toBe('hello there');
    }

    // Who spent most yesterday is found, and one request of that key opened.
    const tomorrow = await visit(adminUrl, { nowMs: Date.now() + 86_400_000 });
    await login(tomorrow.page, adminUrl, adminToken);
    await openView(tomorrow.page, adminUrl, 'usage?range=yesterday', 'Usage');
    const most = tomorrow.page.getByRole('table', { name: 'Usage by key' }).getByRole('rowheader').first();
    expect(await most.textContent()).toBe('large texts');
    await most.getByRole('link').click();
    const requests = tomorrow.page.getByRole('table', { name: 'Requests' }).getByRole('rowheader');
    await requests.getByRole('link').first().click();
    await tomorrow.page.getByRole('heading', { name: /^Request req_/ }).waitFor();

    // No client has noticed any of this.
    const { answered, failed } = await load.stop();
    expect(failed).toEqual([]);
    expect(answered).toBeGreaterThan(100);
    expect(held.filter(({ broken }) => broken)).toEqual([]);
  });
});
