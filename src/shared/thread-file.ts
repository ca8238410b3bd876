import { Worker } from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';

type ThreadOptions = Pick<WorkerOptions, 'workerData' | 'resourceLimits' | 'trackUnmanagedFds'> & {
  readonly name: string;
};

/**
 * Starts a module as a thread: `file`, such as `sqlite-worker`, beside the one that starts it. It runs from source as
 * TypeScript, and as JavaScript from the packed package and from the bundle, where all files are in one folder.
 */
export function startThread(starter: string, file: string, options: ThreadOptions): Worker {
  const url = new URL(`./${file}${starter.endsWith('.ts') ? '.ts' : '.js'}`, starter);
  // Not the app's own arguments: Node refuses to start a worker with some of them, such as `--input-type` of `node -e`.
  return new Worker(url, { ...options, execArgv: [] });
}
