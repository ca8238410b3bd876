import { availableParallelism } from 'node:os';
import type { Problem } from './problem.ts';
import type { Config } from './schema/schema.ts';
import { maxWorkers } from './schema/values.ts';

/** How many processes serve a config: with `auto`, as many as the process may use cores. */
export function workerCount({ workers }: Config['server']): number {
  return workers === 'auto' ? Math.min(availableParallelism(), maxWorkers) : workers;
}

/**
 * The problem of workers on a database that they can't share, in an unchecked config. What a file holds is not read here:
 * whether its URL is one of PostgreSQL is checked when the workers start.
 */
export function unsharedWorkers(input: unknown): readonly Problem[] {
  const { server, storage } = (input ?? {}) as Readonly<
    Record<string, Readonly<Record<string, unknown>> | null | undefined>
  >;
  const workers = server?.['workers'];
  if (workers === undefined || Number(workers) === 1) return [];
  const url = storage?.['url'] ?? 'sqlite:';
  if (typeof url !== 'string' || !url.startsWith('sqlite:')) return [];
  return [{ path: ['server', 'workers'], message: needsSharedDatabase }];
}

/** Why a gateway on SQLite is one process. */
export const needsSharedDatabase =
  'several workers need a PostgreSQL database (storage.url: postgres://…): a SQLite file belongs to one process, which alone counts the limits of its keys. Leave workers out, or set it to 1';
