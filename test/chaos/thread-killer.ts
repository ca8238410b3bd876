import { syncBuiltinESMExports } from 'node:module';
import workerThreads from 'node:worker_threads';

/**
 * Loaded into a gateway's process before its own code (`node --import`): SIGUSR2 terminates the database's current writer
 * thread, as a fault of native code would.
 */
const writerName = 'textgate-sqlite-writer';
const writers: workerThreads.Worker[] = [];

class RememberedWorker extends workerThreads.Worker {
  constructor(file: string | URL, options?: workerThreads.WorkerOptions) {
    super(file, options);
    if (options?.name === writerName) writers.push(this);
  }
}

workerThreads.Worker = RememberedWorker;
syncBuiltinESMExports();
process.on('SIGUSR2', () => void writers.at(-1)?.terminate());
