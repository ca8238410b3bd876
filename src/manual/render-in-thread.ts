import { once } from 'node:events';
import { startThread } from '../shared/thread-file.ts';
import type { Places } from './render-page.ts';

/** A page of the documentation: its text, its path in the checkout, and where all pages are. */
export interface PageToRender {
  readonly markdown: string;
  readonly file: string;
  readonly places: Places;
}

/** How long a page may take, the start of its thread included, in milliseconds. */
const maxMs = 10_000;

let last: Promise<unknown> = Promise.resolve();

/** Renders a page as HTML in a thread, so that no stream waits for it; one page at a time. */
export async function renderInThread(page: PageToRender): Promise<string> {
  const rendered = last.then(() => render(page));
  last = rendered.catch(() => {});
  return rendered;
}

async function render(page: PageToRender): Promise<string> {
  const thread = startThread(import.meta.url, 'page-worker', { name: 'textgate-docs', workerData: page });
  try {
    // An error of the thread rejects this, too.
    const [html] = (await once(thread, 'message', { signal: AbortSignal.timeout(maxMs) })) as [string];
    return html;
  } finally {
    await thread.terminate();
  }
}
