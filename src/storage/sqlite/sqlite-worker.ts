import { parentPort, workerData } from 'node:worker_threads';
import { serveDatabase } from './serve-database.ts';
import type { ThreadOptions } from './thread-messages.ts';

/** A thread with one connection to the database, so that waiting for the disk never holds up a stream. */
if (parentPort === null) throw new Error('this file runs as a worker thread');
serveDatabase(parentPort, workerData as ThreadOptions);
