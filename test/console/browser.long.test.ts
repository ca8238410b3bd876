import { createServer } from 'node:http';
import { existsSync, readdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Page } from 'playwright-core';
import { checkAccessibility } from '../support/browser/accessibility.ts';
import { watchContext } from '../support/browser/complaints.ts';
import type { Watch } from '../support/browser/complaints.ts';
import { isFocused, tabTo } from '../support/browser/keyboard.ts';
import { browserAbsence } from '../support/browser/launch.ts';
import { screenshots } from '../support/browser/screenshots.ts';
import { useBrowser } from '../support/browser/visit.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

/** The policy of the gateway's own pages, as far as it matters here. */
const policy = `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' http://localhost:*; img-src 'self' data:`;

/** Serves a page with this body, and scripts and styles below `/`, on an origin of its own. */
async function servePage(body: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const server = createServer(({ url = '' }, response) => {
    const file = files[url];
    if (url !== '/' && file === undefined) return void response.writeHead(404).end();
    const type = url.endsWith('.js') ? 'text/javascript' : url.endsWith('.css') ? 'text/css' : 'text/html';
    response.writeHead(200, { 'content-type': type, 'content-security-policy': policy });
    const head = `<meta charset="utf-8"><title>a page</title><link rel="icon" href="data:,">`;
    response.end(file ?? `<!doctype html><html lang="en">${head}<main><h1>A page</h1>${body}</main></html>`);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function complaintsOf(watch: Watch): string {
  try {
    watch.expectNoOthers();
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
}

describe.skipIf(browserAbsence !== null)(`pages in a browser (${browserAbsence ?? 'Chromium'})`, () => {
  const visit = useBrowser();

  /** Opens a page in a context whose complaints this test judges itself. */
  async function open(body: string, files: Readonly<Record<string, string>> = {}) {
    const origin = await servePage(body, files);
    const { context, page, openForeignPage } = await visit(origin);
    await page.close();
    const { page: opened } = await openForeignPage('about:blank');
    const watch = watchContext(context, origin);
    await opened.goto(origin);
    return { page: opened, watch };
  }

  test('complain of nothing where there is nothing to complain of', async () => {
    const { page, watch } = await open(`<script src="./a.js"></script>`, {
      '/a.js': 'console.debug("for its author")',
    });
    await page.waitForLoadState('networkidle');
    expect(complaintsOf(watch)).toBe('none');
  });

  test.for([
    ['a failed request', '<script src="./none.js"></script>', '', /404/],
    ['a line on the console', '', 'console.log("left over")', /left over/],
    ['an uncaught error', '', 'throw new Error("broken page")', /uncaught: .*broken page/],
    ['a promise without a handler', '', 'Promise.reject(new Error("a broken promise"))', /broken promise/],
    ['a script in the page itself', '<script>1</script>', '', /Content Security Policy/],
    ['a style in the page itself', '<p style="color: red">x</p>', '', /Content Security Policy/],
    ['code that is made from text', '', 'eval("1")', /unsafe-eval/],
    [
      'a request to another origin',
      '',
      'fetch("http://localhost:1/").catch(() => {})',
      /another origin: http/,
    ],
    ['a picture of another origin', '<img src="http://localhost:1/a.png" alt="a">', '', /another origin/],
  ] as const)('fail on %s', async ([, body, script, complaint]) => {
    const { watch } = await open(`${body}<script src="./a.js"></script>`, { '/a.js': script });
    await expect.poll(() => complaintsOf(watch)).toMatch(complaint);
  });

  test('fail on a complaint that is expected in vain, and take one that is expected', async () => {
    const { watch } = await open('<script src="./a.js"></script>', { '/a.js': 'console.error("wanted")' });
    watch.expect(/wanted/);
    await expect.poll(() => complaintsOf(watch)).toBe('none');
    watch.expect(/never said/);
    expect(complaintsOf(watch)).toBe('the browser complained:\nexpected in vain: /never said/');
  });

  test('are not accessible without names of their fields, and too faint in the dark', async () => {
    const nameless = await open('<input type="text">');
    await expect(checkAccessibility(nameless.page)).rejects.toThrow(/label \(critical\).*\n\s*<input/);
    const style =
      ':root { background: #fff } @media (prefers-color-scheme: dark) { p { background: #222; color: #333 } }';
    const faint = await open('<link rel="stylesheet" href="./a.css"><p>faint</p>', { '/a.css': style });
    await expect(checkAccessibility(faint.page)).rejects.toThrow(
      /^the page is not accessible:\ndark: color-contrast/,
    );
    const good = await open('<p>A text</p><button>Go</button>');
    await checkAccessibility(good.page);
    expect(await good.page.evaluate('typeof axe')).toBe('undefined');
  });

  test('are left with the Tab key only where it leads, and where the focus is seen', async () => {
    const buttons =
      '<button>One</button><button tabindex="-1">Two</button><button class="three">Three</button>';
    const style = '.three:focus { outline: none }';
    const { page } = await open(`<link rel="stylesheet" href="./a.css">${buttons}`, { '/a.css': style });
    const named = (name: string) => page.getByRole('button', { name });
    await tabTo(page, named('One'));
    await expect.poll(() => isFocused(named('One'))).toBe(true);
    await expect(tabTo(page, named('Two'))).rejects.toThrow('does not reach');
    await expect(tabTo(page, named('Three'))).rejects.toThrow('does not show');
  });

  test('are drawn in both themes, and missed where they were not', async () => {
    const folder = makeTemporaryFolder();
    const { page }: { page: Page } = await open('<p>A text</p>');
    await expect(screenshots(page, 'view', { folder, isWritten: false })).rejects.toThrow(
      'UPDATE_SCREENSHOTS=1',
    );
    await screenshots(page, 'view', { folder, isWritten: true });
    expect(readdirSync(folder)).toEqual(['console-view-dark.png', 'console-view-light.png']);
    await screenshots(page, 'view', { folder, isWritten: false });
    expect(existsSync(folder)).toBe(true);
  });
});
