import { describe, expect, onTestFinished, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { askAdmin } from '../support/admin-client.ts';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, logoutButton, tokenField } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { readStream } from '../support/client-answer.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { chatFrames, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';

/** A name that would run a script, if it were taken for markup. */
const markup = '<img src=x onerror=alert(1)>';

/** An upstream that says one word, and never anything more. */
const sticks: Script = (response) => void sendStream(response, chatFrames(['one ']).slice(0, 2));

interface Scene {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
}

async function open(options: TestGatewayOptions = {}, script: Script = sticks): Promise<Scene> {
  const upstream = await startUpstream();
  upstream.play(script);
  const gateway = await startGateway({ upstreamUrl: upstream.url, admin: { readOnlyToken }, ...options });
  onTestFinished(async () => {
    // Requests that are stuck end with their upstream: the gateway waits for them otherwise.
    await upstream.close();
    await gateway.close();
  });
  return { upstream, gateway };
}

/** How a request is named by its client, and how it leaves. */
interface Named {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Sends a request for a stream. */
function ask({ gateway }: Scene, secret = gateway.key, model = 'small', more: Named = {}): LiveAnswer {
  const body = { model, stream: true, messages: [{ role: 'user', content: 'x' }] };
  const headers = { authorization: `Bearer ${secret}`, ...more.headers };
  return readLive(gateway.post('/v1/chat/completions', body, { ...more, headers }));
}

/** Sends a request, and resolves when its client has the first word. */
async function askUntilStuck(scene: Scene, secret?: string, model?: string): Promise<LiveAnswer> {
  const live = ask(scene, secret, model);
  await eventually('the first text is there', () => live.text.includes('one '));
  return live;
}

/** Logs in by keyboard alone; the first view is the one that is meant here. */
async function enter(page: Page, { adminUrl }: TestGateway, token: string): Promise<void> {
  await page.goto(consoleUrl(adminUrl));
  await expect.poll(() => isFocused(tokenField(page))).toBe(true);
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await logoutButton(page).waitFor();
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
}

/** The rows of the requests in progress that have a text. */
const rowsWith = (page: Page, text: string): Locator =>
  page.getByRole('table', { name: 'Requests in progress' }).getByRole('row').filter({ hasText: text });

/** The value and the note of a figure. */
const figure = (page: Page, label: string): Locator =>
  page.locator('.figure').filter({ has: page.getByText(label, { exact: true }) });

describe.skipIf(browserAbsence !== null)(`the view Now (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('shows a request that is stuck, finds it, and cancels it after a question, by the keyboard alone', async () => {
    const scene = await open();
    const { gateway, upstream } = scene;
    const { secret } = await gateway.gateway.createKey('nightly report');
    const stuck = await askUntilStuck(scene, secret);
    const other = await askUntilStuck(scene);
    const { page } = await visit(gateway.adminUrl);
    await enter(page, gateway, gateway.adminToken);
    await rowsWith(page, 'nightly report').waitFor();
    await rowsWith(page, 'small').nth(1).waitFor();
    await figure(page, 'In progress').getByText('2', { exact: true }).waitFor();
    await checkAccessibility(page);

    await tabTo(page, page.getByLabel('Filter'));
    await page.keyboard.type('NIGHTLY');
    await expect.poll(() => rowsWith(page, 'small').count()).toBe(1);
    const cancel = rowsWith(page, 'nightly report').getByRole('button', { name: /^Cancel request req_/ });
    await tabTo(page, cancel);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Cancel this request?' });
    await dialog.waitFor();
    await checkAccessibility(page);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => isFocused(cancel)).toBe(true);
    expect([upstream.aborted, await rowsWith(page, 'nightly report').count()]).toEqual([0, 1]);

    await page.keyboard.press('Enter');
    await tabTo(page, dialog.getByRole('button', { name: 'Cancel', exact: true }));
    await page.keyboard.press('Enter');
    await stuck.ended;
    expect(readStream('chat', stuck.text)).toMatchObject({ text: 'one ', code: 'request_cancelled' });
    await dialog.waitFor({ state: 'hidden' });
    // The button that was pressed is gone, and the next key goes on where it was.
    await expect.poll(() => isFocused(page.getByText('No request in progress has this text.'))).toBe(true);
    await page.getByRole('listitem').filter({ hasText: 'cancelled' }).waitFor();
    expect([other.broken, upstream.aborted]).toEqual([false, 1]);
  });

  test('shows the line of a key whose slots are all in use, and how it gets shorter', async () => {
    const scene = await open({ limits: { concurrency: 1, queueWait: '60s' } });
    const { gateway } = scene;
    const first = await askUntilStuck(scene);
    const waiting = [ask(scene), ask(scene)];
    const { page } = await visit(gateway.adminUrl);
    await enter(page, gateway, gateway.adminToken);
    const line = page.getByRole('listitem').filter({ hasText: 'waits for a slot of the key' });
    const text = async (): Promise<string> => (await line.innerText()).replaceAll(/\s+/g, ' ');
    await expect
      .poll(text)
      .toMatch(/^test waits for a slot of the key or its group: 2 waiting, the first one for \d/);
    await figure(page, 'Waiting').getByText('2', { exact: true }).waitFor();
    expect(await rowsWith(page, 'waits for a slot').count()).toBe(2);
    const { body: keys } = await askAdmin(gateway, 'GET', '/keys');
    const link = line.getByRole('link', { name: 'test' });
    expect(await link.getAttribute('href')).toBe(`#/keys/${keys.data[0].id}`);
    await checkAccessibility(page);

    const running = rowsWith(page, 'small').filter({ hasNotText: 'waits for a slot' });
    await tabTo(page, running.getByRole('button'));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }));
    await page.keyboard.press('Enter');
    await first.ended;
    await eventually('the next one runs', () => waiting.some((live) => live.text.includes('one ')));
    await expect.poll(text).toContain('group: 1 waiting');
  });

  test('shows how many clients get an answer, which request another one has joined, and one that goes on without any', async () => {
    const scene = await open({ resume: { grace: '5m' } });
    const { gateway } = scene;
    const leaving = new AbortController();
    const named = { headers: { 'idempotency-key': 'once' } };
    const first = ask(scene, gateway.key, 'small', { ...named, signal: leaving.signal });
    await eventually('the first text is there', () => first.text.includes('one '));
    const second = ask(scene, gateway.key, 'small', named);
    await eventually('the second one has joined', () => second.text.includes('one '));
    const { page } = await visit(gateway.adminUrl);
    await enter(page, gateway, gateway.adminToken);
    const idOf = ({ headers }: LiveAnswer): string => (headers.get('x-request-id') ?? '').slice(-10);
    await rowsWith(page, `…${idOf(first)} 2 listening`).waitFor();
    await figure(page, 'Waiting').getByText('0', { exact: true }).waitFor();
    await checkAccessibility(page);

    const joined = rowsWith(page, `joined …${idOf(first)}`);
    expect(await joined.innerText()).toContain(idOf(second));
    await tabTo(page, joined.getByRole('button', { name: /^Cancel request req_/ }));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Cancel this request?' });
    await dialog.getByText('The request that it has joined goes on.').waitFor();
    await tabTo(page, dialog.getByRole('button', { name: 'Cancel', exact: true }));
    await page.keyboard.press('Enter');
    await second.ended;
    await rowsWith(page, '1 listening').waitFor();
    leaving.abort();
    await rowsWith(page, 'no client, goes on').waitFor();
    await gateway.gateway.cancel(first.headers.get('x-request-id') ?? '');
  });

  test('shows an upstream that is not asked yet, and then why it fails and which setting to correct', async () => {
    const scene = await open({}, (response) => sendJson(response, 401, '{}'));
    const { gateway } = scene;
    const { page } = await visit(gateway.adminUrl);
    await enter(page, gateway, gateway.adminToken);
    const upstream = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'local' }) });
    await upstream.getByText('not asked yet').waitFor();
    await ask(scene).ended;
    const { body: status } = await askAdmin(gateway, 'GET', '/status');
    const { cause } = status.upstreams.local as { readonly cause: string };
    expect(cause).toContain('Correct upstreams.local.apiKey.');
    await upstream.getByText('failing', { exact: true }).waitFor();
    await upstream.getByText(cause, { exact: true }).waitFor();
    await checkAccessibility(page);
  });

  test('with the read-only token shows the same, and no way to cancel', async () => {
    const scene = await open();
    const { gateway } = scene;
    await askUntilStuck(scene);
    const { page } = await visit(gateway.adminUrl);
    await enter(page, gateway, readOnlyToken);
    await rowsWith(page, 'small').waitFor();
    await page.getByText('read-only', { exact: true }).waitFor();
    expect(await page.getByRole('columnheader', { name: 'Model' }).count()).toBe(1);
    expect(await page.getByRole('columnheader', { name: 'Cancel' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: /cancel/i }).count()).toBe(0);
    await checkAccessibility(page);
  });

  test('shows markup in the names of keys and models as a text', async () => {
    const list = JSON.stringify({ object: 'list', data: [{ id: markup, object: 'model' }] });
    const scene = await open({ discover: true }, (response, request) =>
      request.path.endsWith('/models') ? sendJson(response, 200, list) : sticks(response, request),
    );
    const { gateway } = scene;
    const { secret } = await gateway.gateway.createKey(markup);
    await eventually(
      'the models are known',
      async () => (await fetch(`${gateway.adminUrl}/readyz`)).status === 200,
    );
    await askUntilStuck(scene, secret, markup);
    const { page } = await visit(gateway.adminUrl);
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    await enter(page, gateway, gateway.adminToken);
    await page.getByRole('cell', { name: markup, exact: true }).nth(1).waitFor();
    await tabTo(page, page.getByLabel('Filter'));
    await page.keyboard.type(markup);
    expect(await rowsWith(page, markup).count()).toBe(1);
    expect([dialogs, await page.locator('img').count()]).toEqual([[], 0]);
  });

  test('says that the gateway is lost, and keeps what was last known', async () => {
    const { gateway } = await open();
    const { page, expectComplaint } = await visit(gateway.adminUrl);
    await enter(page, gateway, gateway.adminToken);
    await figure(page, 'Gateway').getByText('ready').waitFor();
    expectComplaint(/net::ERR_/);
    await gateway.gateway.close();
    const lost = page.getByRole('alert').filter({ hasText: 'The connection to the gateway is lost' });
    await lost.waitFor();
    await figure(page, 'Gateway').waitFor();
    await checkAccessibility(page);
    // The browser complains as soon as the page has tried the gateway again.
    await page.waitForEvent('requestfailed');
  });

  test('without any request says so, and what to do next', async () => {
    const { gateway } = await open();
    const { page } = await visit(gateway.adminUrl);
    await enter(page, gateway, gateway.adminToken);
    await page.getByText('No request is in progress.').waitFor();
    await page.getByText('No request has ended. How').waitFor();
    expect(await page.getByText('slots in use').count()).toBe(0);
    await checkAccessibility(page);
    await tabTo(page, page.getByRole('link', { name: 'Try a model' }));
    await page.keyboard.press('Enter');
    const heading = page.getByRole('heading', { level: 1, name: 'Playground' });
    await heading.waitFor();
    await expect.poll(() => isFocused(heading)).toBe(true);
  });
});
