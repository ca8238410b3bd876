import { Worker } from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';

type ThreadOptions = Pick<WorkerOptions, 'workerData' | 'resourceLimits'> & { readonly name: string };

/**
 * Starts `worker` beside the module that starts it, as a thread. It runs from source as TypeScript, and as JavaScript from
 * the packed package.
 */
export function startThread(starter: string, options: ThreadOptions): Worker {
  const file = new URL(`./worker${starter.endsWith('.ts') ? '.ts' : '.js'}`, starter);
  // Not the app's own arguments: Node refuses to start a worker with some of them, such as `--input-type` of `node -e`.
  return new Worker(file, { ...options, execArgv: [] });
}
