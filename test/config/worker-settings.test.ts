import { availableParallelism } from 'node:os';
import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { workerCount } from '../../src/config/worker-settings.ts';
import { problemsOf } from '../support/config-file.ts';

const rest = { upstreams: { demo: { url: 'demo:' } }, models: { from: 'demo' } };
const onPostgres = { url: 'postgres://me@127.0.0.1:5432/gate' };

function countOf(workers: unknown): number {
  return workerCount(checkConfig({ ...rest, storage: onPostgres, server: { workers } }, 'the config').server);
}

describe('server.workers', () => {
  test('is one process unless more are asked for, and with auto one for each core', () => {
    expect(countOf(undefined)).toBe(1);
    expect(countOf(4)).toBe(4);
    expect(countOf('4')).toBe(4);
    expect(countOf('auto')).toBe(Math.min(32, availableParallelism()));
  });

  test.each([0, 33, 1.5, 'many'])('can not be %s', (workers) => {
    const problems = problemsOf(() => countOf(workers));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain('server.workers: ');
  });

  test.each([
    [{ server: { workers: 2 } }],
    [{ server: { workers: '2' } }],
    [{ server: { workers: 'auto' } }],
    [{ server: { workers: 2 }, storage: { url: 'sqlite:data/textgate.db' } }],
  ])('%j needs a PostgreSQL database, because one process has a SQLite file', (sections) => {
    expect(problemsOf(() => checkConfig({ ...rest, ...sections }, 'the config'))).toEqual([
      expect.stringMatching(/^server\.workers: several workers need a PostgreSQL database/),
    ]);
  });

  test('may be 1 on any database', () => {
    expect(checkConfig({ ...rest, server: { workers: 1 } }, 'the config').server.workers).toBe(1);
  });
});
