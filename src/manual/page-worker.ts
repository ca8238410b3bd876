import { parentPort, workerData } from 'node:worker_threads';
import { renderPage } from './render-page.ts';
import type { PageToRender } from './render-in-thread.ts';

/** A thread that renders one page, as its parser needs tens of milliseconds for a long one. */

const { markdown, file, places } = workerData as PageToRender;
parentPort?.postMessage(renderPage(markdown, file, places));
