import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { browserAbsence } from '../support/browser/launch.ts';
import { consoleUrl, login, loginButton, logoutButton, tokenField } from '../support/browser/login.ts';
import { useBrowser } from '../support/browser/visit.ts';
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

describe.skipIf(browserAbsence !== null)(`the console in a browser (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  test('logs in, says who is logged in, leads to the documentation and logs out, without a complaint', async () => {
    const { adminUrl } = await open();
    const { page, context, expectComplaint } = await visit(adminUrl);
    await login(page, adminUrl, readOnlyToken);
    await page.getByText('read-only').filter({ visible: true }).first().waitFor();
    expect(await tokenField(page).isVisible()).toBe(false);
    // No script of the page can read the session, and nothing of the token is left where one could.
    expect(await page.evaluate('document.cookie + location.href')).toBe(consoleUrl(adminUrl));
    expect(await page.content()).not.toContain(readOnlyToken);
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage])')).not.toContain(
      readOnlyToken,
    );
    const documentation = page.getByRole('link', { name: 'Documentation' });
    expect(await documentation.evaluate(({ href }: { href: string }) => href)).toBe(`${adminUrl}/docs/`);
    await documentation.click();
    await page.waitForURL(`${adminUrl}/docs/`);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('The documentation');
    await page.getByRole('link', { name: 'Console', exact: true }).first().click();
    await page.waitForURL(consoleUrl(adminUrl));
    await logoutButton(page).waitFor();
    const [copy] = await context.cookies();
    await logoutButton(page).click();
    await tokenField(page).waitFor();
    expect(await context.cookies()).toEqual([]);
    expectComplaint(/401 .*\/admin\/keys/);
    expect(await page.evaluate(`fetch('../admin/keys').then(({ status }) => status)`)).toBe(401);
    await context.addCookies(copy === undefined ? [] : [copy]);
    expect(await page.evaluate(`fetch('../admin/keys').then(({ status }) => status)`)).toBe(401);
  });

  test('says that a token is wrong', async () => {
    const { adminUrl } = await open();
    const { page, expectComplaint } = await visit(adminUrl);
    expectComplaint(/401 .*\/console\/session/);
    await page.goto(consoleUrl(adminUrl));
    await tokenField(page).fill('a wrong token');
    await loginButton(page).click();
    await page.getByText('The admin token is missing or wrong.').waitFor();
    expect(await logoutButton(page).isVisible()).toBe(false);
  });

  test('is not reached by other pages of the browser in which an operator is logged in', async () => {
    const gateway = await open();
    const { page: own, openForeignPage } = await visit(gateway.adminUrl);
    await login(own, gateway.adminUrl, gateway.adminToken);
    expect(await own.evaluate(creating(gateway, 'an operator'))).toBe(201);
    const port = await serveForeignPage();
    // The first is of the same site, so that the browser sends the cookie; the second is of another one.
    for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
      const { page } = await openForeignPage(origin);
      expect(await page.evaluate(creating(gateway, 'an attacker'))).toBe('blocked');
      expect(await page.evaluate(creating(gateway, 'an attacker', `mode: 'no-cors'`))).toBe('opaque');
      expect(await page.evaluate(reading(gateway))).toBe('blocked');
      expect(await page.evaluate(loadingScript(gateway))).toBe('refused');
      await page.evaluate(sendingForm(gateway, readOnlyToken));
      await page.getByText('invalid_api_key').waitFor();
    }
    const { page: framing, complaints } = await openForeignPage(`http://127.0.0.1:${port}`);
    await framing.evaluate(addingFrame(gateway));
    expect(framing.frames().map((frame) => frame.url())).toEqual([
      `http://127.0.0.1:${port}/`,
      'chrome-error://chromewebdata/',
    ]);
    expect(complaints.join()).toContain('frame-ancestors');
    const { data } = await gateway.gateway.keys.list();
    expect(data.map(({ name }) => name).toSorted()).toEqual(['an operator', 'test']);
    const role = await own.evaluate(
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
