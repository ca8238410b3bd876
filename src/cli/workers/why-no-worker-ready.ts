import type { WorkerProcess } from './fork-worker.ts';
import type { Answer } from './messages.ts';

/** Why none of the workers can take requests; nothing as soon as one says that it can, however long the others take to answer. */
export async function whyNoWorkerReady(workers: readonly Pick<WorkerProcess, 'ask'>[]): Promise<Answer> {
  const { promise: anyReady, resolve } = Promise.withResolvers<null>();
  const reasons = workers.map(async (worker) => {
    const reason = await worker.ask({ name: 'why not ready' });
    if (reason === null) resolve(null);
    return reason;
  });
  const noneReady = Promise.all(reasons).then(
    (all) => all.find((reason) => typeof reason === 'string') ?? 'no answer',
  );
  return Promise.race([anyReady, noneReady]);
}
