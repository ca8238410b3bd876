import type { BrowserContext, ConsoleMessage, Page } from 'playwright-core';

/** What the browser says of the pages of a visit. */
export interface Watch {
  /** Says that a complaint of this form will come. */
  readonly expect: (form: RegExp) => void;
  /** Throws what came unexpectedly, and what was expected in vain. */
  readonly expectNoOthers: () => void;
  /** Collects what is said of one page, without judging it. */
  setApart(page: Page): readonly string[];
}

/** What scripts write for their authors, and hints that no visitor is shown. */
const silent = new Set(['verbose', 'debug']);

/**
 * Collects the complaints of all pages: errors and other lines of the console, such as breaches of the page's policy and
 * failed requests, uncaught errors of scripts, crashes, and requests to other origins than their own.
 */
export function watchContext(context: BrowserContext, origin: string): Watch {
  const own = new URL(origin).origin;
  const complaints: string[] = [];
  const expected: RegExp[] = [];
  const apart = new Map<Page | null, string[]>();
  const add = (page: Page | null, text: string): void => void (apart.get(page) ?? complaints).push(text);
  const addRequest = (page: Page | null, url: string): void => {
    if (isElsewhere(url, own)) add(page, `a request to another origin: ${url}`);
  };
  context.on('console', (message) => {
    if (!silent.has(message.type())) add(message.page(), lineOf(message));
  });
  context.on('weberror', (fault) => add(fault.page(), `uncaught: ${String(fault.error())}`));
  context.on('request', (request) => addRequest(pageOf(request), request.url()));
  context.on('page', (page) => {
    page.on('crash', () => add(page, 'the page has crashed'));
    page.on('websocket', (socket) => addRequest(page, socket.url().replace(/^ws/, 'http')));
  });
  return {
    expect: (form) => void expected.push(form),
    expectNoOthers() {
      const others = complaints.filter((text) => !expected.some((form) => form.test(text)));
      const missing = expected.filter((form) => !complaints.some((text) => form.test(text)));
      const faults = [...others, ...missing.map((form) => `expected in vain: ${String(form)}`)];
      if (faults.length > 0) throw new Error(`the browser complained:\n${faults.join('\n')}`);
    },
    setApart(page) {
      const said: string[] = [];
      apart.set(page, said);
      return said;
    },
  };
}

function lineOf(message: ConsoleMessage): string {
  const { url, lineNumber } = message.location();
  return `${message.type()}: ${message.text()} (${url}:${lineNumber})`;
}

/** Texts in the page itself, and what scripts have made, are requests of no origin. */
function isElsewhere(url: string, own: string): boolean {
  return !/^(data|blob|about):/.test(url) && new URL(url).origin !== own;
}

/** The page of a request; `null` for one of a page that is being opened. */
function pageOf(request: { frame(): { page(): Page } }): Page | null {
  try {
    return request.frame().page();
  } catch {
    return null;
  }
}
