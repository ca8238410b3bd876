import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { movedPages } from '../../src/manual/open-manual.ts';
import { pageTexts } from '../support/pages.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({});
});
afterAll(() => gateway.close());

const get = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(new URL(path, gateway.adminUrl), { redirect: 'manual', ...init });

/** Everything that a page links to, as absolute addresses with their anchors. */
function linksOf(html: string, url: string): readonly URL[] {
  const links = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, target = '']) => new URL(target, url));
  return links.filter(({ origin }) => origin === new URL(url).origin);
}

const pathsOf = (html: string, url: string): readonly string[] =>
  linksOf(html, url).map(({ origin, pathname }) => origin + pathname);

/** Reads all pages from the index on; returns their texts by their addresses. */
async function crawl(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const open = [`${gateway.adminUrl}/docs/`];
  for (let url = open.pop(); url !== undefined; url = open.pop()) {
    if (found.has(url)) continue;
    const response = await get(url);
    if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
    const text = await response.text();
    found.set(url, text);
    if (response.headers.get('content-type')?.startsWith('text/html') === true)
      open.push(...pathsOf(text, url).filter((linked) => linked.startsWith(`${gateway.adminUrl}/docs/`)));
  }
  return found;
}

describe('the documentation on the admin listener', () => {
  test('is all its pages, and each of their links leads to a page and a heading', async () => {
    const pages = await crawl();
    const titles = [...pages.values()].filter((text) => text.startsWith('<!doctype html>'));
    const written = pageTexts().filter(([path]) => path.startsWith('docs/') || path === 'README.md');
    expect(titles).toHaveLength(written.length);
    // No link leaves the documentation but the one to the console, which each page has.
    for (const [url, text] of pages) {
      if (!text.startsWith('<!doctype html>')) continue;
      const others = pathsOf(text, url).filter((linked) => !pages.has(linked));
      expect(text).toMatch(/<form role="search" action="(\.\.\/)*search">/);
      expect([url, ...others]).toEqual([url, `${gateway.adminUrl}/console/`]);
    }
    expect((await get('/console/')).status).toBe(200);
    const lost = [...pages].flatMap(([url, text]) =>
      linksOf(text, url)
        .filter(({ hash }) => hash !== '')
        .filter(({ origin, pathname, hash }) => {
          const target = pages.get(origin + pathname) ?? '';
          return !target.includes(`id="${decodeURIComponent(hash.slice(1))}"`);
        })
        .map(({ href }) => `${url} → ${href}`),
    );
    expect(lost).toEqual([]);
  });

  test('loads nothing from elsewhere, has no script, and is shown in no frame', async () => {
    const response = await get('/docs/operators/config');
    const html = await response.text();
    expect(html).toContain('<table>');
    expect(html).not.toMatch(/<script|javascript:|\son\w+=/i);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const style = await get('/docs/style.css');
    expect(style.headers.get('content-type')).toBe('text/css; charset=utf-8');
  });

  test('finds the sections with all words of a search, those with them in a heading first', async () => {
    const html = await (await get('/docs/search?q=Read-Only+TOKEN')).text();
    const [first] = /<li>.*<\/li>/.exec(html) ?? [];
    expect(first).toContain('<a href="operators/console#the-read-only-token">');
    expect(html).toContain('value="Read-Only TOKEN"');
    const links = linksOf(html, `${gateway.adminUrl}/docs/search`).filter(({ hash }) => hash !== '');
    expect(links.length).toBeGreaterThan(3);
    for (const { pathname, hash } of links)
      expect(await (await get(pathname)).text()).toContain(`id="${decodeURIComponent(hash.slice(1))}"`);
  });

  test('writes what was searched as text, and searches no more than 200 characters', async () => {
    const html = await (await get(`/docs/search?q=${encodeURIComponent('"><script>x</script>')}`)).text();
    expect(html).toContain('value="&quot;>&lt;script>x&lt;/script>"');
    expect(html).not.toContain('<script');
    expect(html).toContain('Sections with all of these words: 0.');
    const long = await (await get(`/docs/search?q=${'a'.repeat(5_000)}`)).text();
    expect(long).not.toContain('a'.repeat(201));
    expect(await (await get('/docs/search')).text()).toContain('Enter a word.');
  });

  test('has the OpenAPI document, and a short index for programs', async () => {
    const document = await get('/docs/openapi.json');
    expect(await document.json()).toMatchObject({ openapi: '3.1.0' });
    expect(await (await get('/docs/llms.txt')).text()).toMatch(/^# textgate\n\n> /);
  });

  test('leads from /docs to /docs/, whose relative links work', async () => {
    const response = await get('/docs');
    expect([response.status, response.headers.get('location')]).toEqual([308, 'docs/']);
  });

  test.for([
    '/docs/none',
    '/docs/../package.json',
    '/docs/%2e%2e/package.json',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e%2fpackage.json',
    '/docs/operators/../../package.json',
    '/docs//etc/passwd',
    '/docs/%00',
    '/docs/operators',
  ])('has nothing at %s', async (path) => {
    const response = await get(gateway.adminUrl + path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: 'unknown_url' } });
  });

  test.each([
    ['/docs/operators/money.md', '/docs/operators/money'],
    ['/docs/operators/money.html', '/docs/operators/money'],
    ['/docs/operators/money/', '/docs/operators/money'],
    ['/docs/README.md', '/docs/'],
    ['/docs/index.html', '/docs/'],
    ['/docs/readme.md', '/docs/readme'],
  ])('shows the page for the name of its file: %s', async (path, place) => {
    const shown = await get(path, { redirect: 'follow' });
    expect([shown.status, new URL(shown.url).pathname]).toEqual([200, place]);
    expect(shown.headers.get('content-type')).toBe('text/html; charset=utf-8');
  });

  test.each([...movedPages])('leads from the former name of a page, %s, to %s', async (old, place) => {
    const { pathname, hash } = new URL(place, `${gateway.adminUrl}/docs/`);
    for (const path of [`/docs/${old}`, `/docs/${old}.md`, `/docs/${old}/`]) {
      const response = await get(path);
      const location = new URL(response.headers.get('location') ?? '', new URL(path, gateway.adminUrl));
      expect([response.status, location.pathname, location.hash]).toEqual([308, pathname, hash]);
    }
    const html = await (await get(pathname)).text();
    expect(html).toContain(`id="${hash.slice(1)}`);
  });

  test.each([
    '/docs/operators/nothing.md',
    '/docs/operators/',
    '/docs/.md',
    '/docs/openapi.json/x',
    '/docs/..%2fREADME.md',
  ])('has no page at %s', async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  test('is read, not written', async () => {
    const response = await get('/docs/operators/config', { method: 'POST' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await get('/docs/', { method: 'HEAD' })).status).toBe(200);
  });
});
