import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
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

/** How long a thread waits for the next page, in milliseconds: its start takes as long as many pages. */
const idleMs = 5_000;

/** The pages that were rendered, or are, by their files: as many as the documentation has. */
const rendered = new Map<string, { readonly markdown: string; readonly html: Promise<string> }>();

let last: Promise<unknown> = Promise.resolve();

/** The thread that waits for the next page, and when it ends. */
let waiting: Worker | null = null;
let end: NodeJS.Timeout | undefined;

/** Renders a page as HTML in a thread, so that no stream waits for it: one page at a time, and each text of a page once. */
export function renderInThread(page: PageToRender): Promise<string> {
  const known = rendered.get(page.file);
  if (known?.markdown === page.markdown) return known.html;
  const html = last.then(() => render(page));
  rendered.set(page.file, { markdown: page.markdown, html });
  last = html.catch(() => void rendered.delete(page.file));
  return html;
}

async function render(page: PageToRender): Promise<string> {
  const thread = takeThread();
  try {
    thread.postMessage(page);
    // An error of the thread rejects this, too.
    const [html] = (await once(thread, 'message', { signal: AbortSignal.timeout(maxMs) })) as [string];
    keep(thread);
    return html;
  } catch (error) {
    await thread.terminate();
    throw error;
  }
}

/** The thread that waits for the next page, or a new one. */
function takeThread(): Worker {
  const thread = waiting ?? startWorker();
  waiting = null;
  clearTimeout(end);
  thread.ref();
  return thread;
}

function startWorker(): Worker {
  const thread = startThread(import.meta.url, 'page-worker', { name: 'textgate-docs' });
  const forget = (): void => {
    if (waiting === thread) waiting = null;
  };
  // An error while it waits would end the process if nothing listened.
  return thread.on('error', forget).on('exit', forget);
}

/** Has a thread wait for the next page for some time. It keeps no process alive. */
function keep(thread: Worker): void {
  waiting = thread;
  thread.unref();
  end = setTimeout(() => {
    waiting = null;
    void thread.terminate();
  }, idleMs).unref();
}
