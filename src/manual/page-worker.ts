import { parentPort } from 'node:worker_threads';
import { renderPage } from './render-page.ts';
import type { PageToRender } from './render-in-thread.ts';

/** A thread that renders pages, as its parser needs tens of milliseconds for a long one. */

parentPort?.on('message', ({ markdown, file, places }: PageToRender) =>
  parentPort?.postMessage(renderPage(markdown, file, places)),
);
