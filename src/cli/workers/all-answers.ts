import type { WorkerProcess } from './fork-worker.ts';

/** What each worker says of itself, as a list in JSON. One that does not answer in time is left out. */
export async function allAnswers(
  workers: readonly Pick<WorkerProcess, 'ask'>[],
  name: 'status' | 'views',
): Promise<string> {
  const told = await Promise.all(workers.map((worker) => worker.ask({ name })));
  return `[${told.filter((text) => typeof text === 'string').join(',')}]`;
}
