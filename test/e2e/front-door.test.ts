import { expect, onTestFinished, test } from 'vitest';
import { makeCertificate, trustCertificate } from '../support/certificate.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

/** What browsers accept when a person opens an address. */
const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

async function open(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const originOf = ({ url }: TestGateway): string => new URL(url).origin;

test('a person who opens the address reads what it is, how to call it and where to ask for a key', async () => {
  const gateway = await open({ server: { contact: 'mailto:llm-team@example.com' } });
  const response = await fetch(gateway.url, { headers: { accept } });
  const page = await response.text();
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(page).toContain(`<code>${gateway.url}/v1</code>`);
  expect(page).toContain(`curl ${gateway.url}/v1/models -H "Authorization: Bearer $API_KEY"`);
  expect(page).toContain('<a href="mailto:llm-team@example.com" rel="noreferrer">llm-team@example.com</a>');
  expect(page).not.toMatch(/small|tiny|demo|textgate|version|<script|<style|style=/);
  expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect([response.headers.get('cache-control'), response.headers.get('vary')]).toEqual([
    'no-store',
    'accept',
  ]);
});

test('programs get what they get on every unknown path', async () => {
  const gateway = await open();
  const requests: RequestInit[] = [
    {},
    { headers: { accept: '*/*' } },
    { headers: { accept: 'application/json' } },
    { headers: { accept: 'application/json, text/html;q=0.9' } },
    { method: 'POST', headers: { accept } },
  ];
  for (const request of requests) {
    const response = await fetch(gateway.url, request);
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: 'unknown_url' } }]);
  }
  const head = await fetch(gateway.url, { method: 'HEAD', headers: { accept } });
  expect(head.status).toBe(404);
  expect((await fetch(`${gateway.url}/v1`, { headers: { accept } })).status).toBe(404);
  expect((await fetch(`${gateway.url}/index.html`, { headers: { accept } })).status).toBe(404);
});

test('below a base path the page is there, with the base path in its addresses', async () => {
  const gateway = await open({ server: { basePath: '/llm', contact: 'Room <b>7</b>' } });
  for (const path of ['/llm', '/llm/', '/llm/?from=mail']) {
    const page = await (await fetch(originOf(gateway) + path, { headers: { accept } })).text();
    expect(page).toContain(`<code>${originOf(gateway)}/llm/v1</code>`);
    expect(page).toContain('<p>Room &lt;b&gt;7&lt;/b&gt;</p>');
  }
  expect((await fetch(originOf(gateway), { headers: { accept } })).status).toBe(404);
});

test('behind a trusted proxy the address has the scheme that it reports, and another client reports none', async () => {
  const headers = { accept, 'x-forwarded-proto': 'http, https' };
  const behind = await open({ server: { trustedProxies: ['loopback'] } });
  const { host } = new URL(behind.url);
  expect(await (await fetch(behind.url, { headers })).text()).toContain(`<code>https://${host}/v1</code>`);
  const alone = await open();
  expect(await (await fetch(alone.url, { headers })).text()).toContain(`<code>${alone.url}/v1</code>`);
});

test('over TLS of its own the address begins with https', async () => {
  const certificate = makeCertificate(makeTemporaryFolder());
  trustCertificate(certificate);
  const gateway = await open({ server: { tls: certificate.paths } });
  const page = await (await fetch(gateway.url, { headers: { accept } })).text();
  expect(page).toContain(`<code>${gateway.url}/v1</code>`);
  expect(gateway.url).toMatch(/^https:/);
});

test.for([
  ['https://example.com/keys?a=1&b=2', '<a href="https://example.com/keys?a=1&amp;b=2"'],
  ['javascript:alert(1)', '<p>javascript:alert(1)</p>'],
  ['https://example.com/"onclick="x', '<a href="https://example.com/&quot;onclick=&quot;x"'],
] as const)('the contact %s is written as %s', async ([contact, written]) => {
  const gateway = await open({ server: { contact } });
  expect(await (await fetch(gateway.url, { headers: { accept } })).text()).toContain(written);
});
