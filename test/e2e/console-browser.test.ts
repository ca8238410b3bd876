import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { browserAbsence, openBrowser } from '../support/browser.ts';
import type { BrowserPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';

async function open(): Promise<TestGateway> {
  const gateway = await startGateway({ admin: { readOnlyToken } });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** A page of another origin on this machine, whose requests are of the same site, but for its name `localhost`. */
async function serveForeignPage(): Promise<number> {
  const server = createServer((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<!doctype html><title>another page</title>');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const textOf = (page: BrowserPage, selector: string): Promise<unknown> =>
  page.run(
    `document.querySelector(${JSON.stringify(selector)})?.checkVisibility() && document.querySelector(${JSON.stringify(selector)}).textContent`,
  );

async function logIn(page: BrowserPage, { adminUrl }: TestGateway, token: string): Promise<void> {
  await page.open(`${adminUrl}/console/`);
  await eventually('the login is shown', async () => (await textOf(page, '#login')) !== false);
  await page.run(
    `document.querySelector('#token').value = ${JSON.stringify(token)}; document.querySelector('#login button').click()`,
  );
}

describe.skipIf(browserAbsence !== null)(`the console in a browser (${browserAbsence ?? 'Chromium'})`, () => {
  test('logs in, says who is logged in, leads to the documentation and logs out, without a complaint', async () => {
    const gateway = await open();
    const page = await (await openBrowser()).openPage();
    await logIn(page, gateway, readOnlyToken);
    await eventually('the session is shown', async () => (await textOf(page, '#session')) !== false);
    expect(await textOf(page, '#role')).toContain('read-only token');
    expect(await page.run('document.cookie + document.querySelector("#token").value + location.href')).toBe(
      `${gateway.adminUrl}/console/`,
    );
    const link = await page.run(`document.querySelector('#session a').href`);
    expect(link).toBe(`${gateway.adminUrl}/docs/`);
    await page.open(String(link));
    expect(await textOf(page, 'h1')).toBe('The documentation');
    await page.open(`${gateway.adminUrl}/console/`);
    await eventually('the session is shown again', async () => (await textOf(page, '#session')) !== false);
    await page.run(`document.querySelector('#logout').click()`);
    await eventually('the login is shown again', async () => (await textOf(page, '#login')) !== false);
    expect(await page.run(`fetch('../admin/keys').then(({ status }) => status)`)).toBe(401);
    // The last request is refused, as it should be: browsers report that, too.
    expect(page.complaints.filter((text) => !text.includes('/admin/keys'))).toEqual([]);
  });

  test('says that a token is wrong', async () => {
    const gateway = await open();
    const page = await (await openBrowser()).openPage();
    await logIn(page, gateway, 'a wrong token');
    await eventually('the message is shown', async () => (await textOf(page, '#message')) !== '');
    expect(await textOf(page, '#message')).toBe('The admin token is missing or wrong.');
    expect(await textOf(page, '#session')).toBe(false);
  });

  test('is not reached by other pages of the browser in which an operator is logged in', async () => {
    const gateway = await open();
    const browser = await openBrowser();
    const own = await browser.openPage();
    await logIn(own, gateway, gateway.adminToken);
    await eventually('the session is shown', async () => (await textOf(own, '#session')) !== false);
    expect(await own.run(creating(gateway, 'an operator'))).toBe(201);
    const port = await serveForeignPage();
    // The first is of the same site, so that the browser sends the cookie; the second is of another one.
    for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
      const page = await browser.openPage();
      await page.open(origin);
      expect(await page.run(creating(gateway, 'an attacker'))).toBe('blocked');
      expect(await page.run(creating(gateway, 'an attacker', `mode: 'no-cors'`))).toBe('opaque');
      expect(await page.run(reading(gateway))).toBe('blocked');
      expect(await page.run(loadingScript(gateway))).toBe('refused');
      await page.run(sendingForm(gateway, readOnlyToken));
      await eventually('the form is refused', async () =>
        String(await page.run('document.body?.textContent')).includes('invalid_api_key'),
      );
    }
    const framing = await browser.openPage();
    await framing.open(`http://127.0.0.1:${port}`);
    await framing.run(addingFrame(gateway));
    expect(await framing.frames()).toEqual(['chrome-error://chromewebdata/']);
    expect(framing.complaints.join()).toContain('frame-ancestors');
    const { data } = await gateway.gateway.keys.list();
    expect(data.map(({ name }) => name).toSorted()).toEqual(['an operator', 'test']);
    const role = await own.run(
      `fetch('session').then((answer) => answer.json()).then((found) => found.role)`,
    );
    expect(role).toBe('admin');
  });
});

/** Scripts of pages, each with a value that says what became of it. */
const creating = (
  { adminUrl }: TestGateway,
  name: string,
  how = `headers: { 'content-type': 'application/json' }`,
) =>
  `fetch('${adminUrl}/admin/keys', { method: 'POST', body: '{"name":"${name}"}', credentials: 'include', ${how} })
    .then(({ status, type }) => status || type, () => 'blocked')`;

const reading = ({ adminUrl }: TestGateway) =>
  `fetch('${adminUrl}/admin/keys', { credentials: 'include' }).then(({ status }) => status, () => 'blocked')`;

const loadingScript = ({ adminUrl }: TestGateway) => `new Promise((resolve) => {
  const script = Object.assign(document.createElement('script'), { src: '${adminUrl}/console/app.js' });
  script.onload = () => resolve('loaded');
  script.onerror = () => resolve('refused');
  document.body.append(script);
})`;

const addingFrame = ({ adminUrl }: TestGateway) => `new Promise((resolve) => {
  const frame = Object.assign(document.createElement('iframe'), { src: '${adminUrl}/console/' });
  frame.onload = resolve;
  document.body.append(frame);
}).then(() => null)`;

const sendingForm = ({ adminUrl }: TestGateway, token: string) => `{
  const form = Object.assign(document.createElement('form'), { method: 'post', action: '${adminUrl}/console/session' });
  form.innerHTML = '<input name="token" value="${token}">';
  document.body.append(form);
  form.submit();
}`;
