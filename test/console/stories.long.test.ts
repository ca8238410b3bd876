import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { askAdmin } from '../support/admin-client.ts';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { login } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** The most clicks of a story: links, choices, and searches that are sent. */
const maxClicks = 5;

const alicesToken = 'a-token-of-alice-for-tests';

let gateway: TestGateway;
let upstreams: readonly ScriptedUpstream[];

/** A gateway with what the stories are about: an upstream that fails, a key that is refused, a changed limit, a slow model. */
beforeAll(async () => {
  const [good, slow, broken] = await Promise.all([startUpstream(), startUpstream(), startUpstream()]);
  upstreams = [good, slow, broken];
  good.play(sayTexts(['hello']));
  slow.play((response, request) => void setTimeout(() => void sayTexts(['hello'])(response, request), 150));
  broken.play((response) =>
    sendJson(response, 401, '{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}'),
  );
  const model = (upstream: string) => ({
    routes: [{ upstream, model: 'tiny' }],
    price: { input: '1', output: '2' },
  });
  gateway = await startGateway({
    upstreamUrl: good.url,
    upstreams: { slow: { url: slow.url }, broken: { url: broken.url } },
    models: { old: model('local'), new: model('slow'), wrong: model('broken') },
    admin: { tokens: [{ name: 'alice', token: alicesToken }] },
  });
  const make = async (name: string, more: object = {}): Promise<{ id: string; key: string }> => {
    const { body } = await askAdmin(gateway, 'POST', '/keys', { name, ...more });
    plant(body.key);
    return body;
  };
  const bob = await make('bob', { requestsPerMinute: 100 });
  const greedy = await make('greedy', { requestsPerMinute: 1 });
  const ask = async (secret: string, name: string): Promise<void> => {
    const body = { model: name, stream: true, messages: [{ role: 'user', content: 'x' }] };
    const headers = { authorization: `Bearer ${secret}` };
    await (await gateway.post('/v1/chat/completions', body, { headers })).text();
  };
  for (const name of ['old', 'new', 'old', 'new', 'wrong', 'wrong']) await ask(bob.key, name);
  for (let sent = 0; sent < 4; sent++) await ask(greedy.key, 'old');
  const leaving = new AbortController();
  const left = gateway.post(
    '/v1/chat/completions',
    { model: 'new', stream: true, messages: [{ role: 'user', content: 'x' }] },
    { headers: { authorization: `Bearer ${bob.key}` }, signal: leaving.signal },
  );
  await eventually('the request has an upstream', () => slow.running === 1);
  leaving.abort();
  await left.catch(() => null);
  await eventually('the request is given up', () => slow.running === 0);
  await gateway.recorded();
  const changed = await fetch(`${gateway.adminUrl}/admin/keys/${bob.id}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${alicesToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ requestsPerMinute: 10 }),
  });
  if (!changed.ok) throw new Error(`the limit is not changed: ${changed.status}`);
  // Refused requests are added to their sums every five seconds.
  await eventually(
    'the refused requests are added',
    async () => (await askAdmin(gateway, 'GET', '/failures')).body.refusals.by_key.length > 0,
  );
}, 60_000);
afterAll(async () => {
  await gateway.close();
  await Promise.all(upstreams.map((upstream) => upstream.close()));
});

/** A person who does all by keyboard: each thing that is pressed, chosen or searched counts as a click. */
class Person {
  clicks = 0;
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async press(target: Locator): Promise<void> {
    this.clicks++;
    await tabTo(this.page, target);
    await this.page.keyboard.press('Enter');
  }

  /** Follows the link of a view. */
  async open(view: string): Promise<void> {
    await this.press(this.page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: view }));
    await this.page.getByRole('heading', { level: 1, name: view, exact: true }).waitFor();
  }

  /** Chooses by the first letters of a text. */
  async choose(label: string, letters: string): Promise<void> {
    this.clicks++;
    const field = this.page.getByLabel(label, { exact: true });
    await field.waitFor();
    await tabTo(this.page, field);
    await this.page.keyboard.type(letters);
  }

  async search(label: string, text: string): Promise<void> {
    this.clicks++;
    await tabTo(this.page, this.page.getByLabel(label));
    await this.page.keyboard.type(text);
    await this.page.keyboard.press('Enter');
  }
}

describe.skipIf(browserAbsence !== null)(`six questions (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  const enter = async (): Promise<Person> => {
    const { page } = await visit(gateway.adminUrl);
    await login(page, gateway.adminUrl, gateway.adminToken);
    return new Person(page);
  };

  /** A story is over: it took few clicks, and what it led to is accessible. */
  const end = async ({ page, clicks }: Person): Promise<void> => {
    expect(clicks).toBeLessThanOrEqual(maxClicks);
    await checkAccessibility(page);
  };

  test('which upstream failed, and what did it say', async () => {
    const person = await enter();
    const { page } = person;
    await page.getByRole('img', { name: /^Requests per second/ }).waitFor();
    await person.press(page.getByRole('link', { name: 'failures', exact: true }));
    const cause = page.getByRole('listitem').filter({ hasText: 'broken' }).first();
    await cause.waitFor();
    expect(await cause.textContent()).toMatch(/2 requests.*Incorrect API key provided/s);
    await cause.getByText('what to do').waitFor();
    await end(person);
    await person.press(cause.getByRole('link', { name: /^those with this cause/ }));
    const rows = page.getByRole('table', { name: 'Requests' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(3);
    await end(person);
  });

  test('which requests were broken off by their clients, which is told as no words of a provider', async () => {
    const person = await enter();
    const { page } = person;
    await person.open('Failures');
    const cause = page.getByRole('listitem').filter({ hasText: 'client closed' }).first();
    await cause.waitFor();
    expect(await cause.textContent()).toMatch(/1 request: client closed/);
    expect(await cause.getByRole('term').allTextContents()).toEqual(['code', 'when', 'whom', 'requests']);
    await person.press(cause.getByRole('link', { name: /^those with this cause/ }));
    const rows = page.getByRole('table', { name: 'Requests' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(2);
    await end(person);
  });

  test('who was refused most today, and by which limit', async () => {
    const person = await enter();
    await person.open('Failures');
    const table = person.page.getByRole('table', { name: 'Refused requests by key and limit' });
    await table.waitFor();
    expect(await table.getByRole('row').nth(1).innerText()).toMatch(/greedy\s+rate\s+3/);
    await end(person);
  });

  test('what did bob pay last week, and for what', async () => {
    const person = await enter();
    const { page } = person;
    await person.open('Usage');
    await person.choose('Time', 'Last 7');
    const table = page.getByRole('table', { name: 'Usage by key' });
    const row = table.getByRole('row').filter({ hasText: 'bob' });
    await row.waitFor();
    await person.press(row.getByRole('link', { name: 'by model of bob' }));
    const models = page.getByRole('table', { name: 'Usage by model' });
    await models.waitFor();
    expect(await models.getByRole('rowheader').allTextContents()).toEqual(
      expect.arrayContaining(['new', 'old']),
    );
    await page.getByRole('list', { name: 'Filters' }).getByText('bob').waitFor();
    await end(person);
  });

  test('who lowered the limit of bob', async () => {
    const person = await enter();
    const { page } = person;
    await person.open('Keys');
    await person.press(page.getByRole('link', { name: 'bob', exact: true }));
    await person.press(page.getByRole('link', { name: 'Its audit' }));
    const row = page
      .getByRole('table', { name: /^Audit/ })
      .getByRole('row')
      .filter({ hasText: 'key changed' });
    await row.waitFor();
    expect(await row.innerText()).toMatch(/bob.*100 → 10.*alice/s);
    await end(person);
  });

  test('is the new model slower than the old one', async () => {
    const person = await enter();
    const { page } = person;
    await person.open('Latency');
    await person.choose('Model and upstream', 'old at');
    await person.choose('Compare with', 'new at');
    const [old, other] = ['old at local', 'new at slow'].map((name) =>
      page.locator('section').filter({ has: page.getByRole('heading', { name, exact: true }) }),
    );
    const median = async (place: Locator | undefined): Promise<string> =>
      /within (\d+) ms/.exec((await place?.getByText(/^Half of/).innerText()) ?? '')?.[1] ?? '';
    await expect.poll(async () => Number(await median(other))).toBeGreaterThanOrEqual(140);
    expect(Number(await median(old))).toBeLessThan(140);
    expect(page.url()).toContain('other=new+at+slow');
    await end(person);
  });
});
