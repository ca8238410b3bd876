import { describe, expect, test } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Row } from '../../src/storage/engine.ts';
import { watchSharedDatabase } from '../../src/storage/postgres/shared-database.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const lossy = 'no synchronous standby: a failover of the database loses the last settlements';

/** A watch over a database that answers as the test says; `reads` counts what it is asked. */
function watch(answer: () => Promise<Row>) {
  const clock = createFakeClock();
  const counted = { reads: 0, newestCommitMs: null as number | null };
  const engine = {
    async lookUp() {
      counted.reads++;
      return [[await answer()]];
    },
  };
  const newestCommitMs = (): number | null => counted.newestCommitMs;
  const read = watchSharedDatabase({ engine, newestCommitMs, clock, shared: ['balances'] });
  return { clock, counted, read };
}

describe('the state of a shared database', () => {
  test.each([
    ['on', 'FIRST 1 (a, b)', 'configured', []],
    ['remote_apply', '*', 'configured', []],
    ['on', '', 'none', [lossy]],
    ['local', '*', 'none', [lossy]],
    ['off', '*', 'none', ['synchronous_commit is off: a crash of the database loses the last settlements']],
  ])(
    'with synchronous_commit %s and the standbys "%s" is %s',
    async (commit, standbys, standby, warnings) => {
      const { read } = watch(async () => ({ commit, standbys }));
      expect(await read()).toEqual({
        shared: ['balances'],
        synchronousStandby: standby,
        newestCommitAgeMs: null,
        warnings,
      });
    },
  );

  test('is read from the server once in five seconds, and the age of the newest commit each time', async () => {
    const { clock, counted, read } = watch(async () => ({ commit: 'on', standbys: '*' }));
    counted.newestCommitMs = clock.monotonicMs();
    await Promise.all([read(), read()]);
    clock.advance(4_999);
    expect(await read()).toMatchObject({ newestCommitAgeMs: 4_999 });
    expect(counted.reads).toBe(1);
    clock.advance(1);
    await read();
    expect(counted.reads).toBe(2);
  });

  test('is unknown after half a second without an answer, and no second read is begun meanwhile', async () => {
    const { clock, counted, read } = watch(() => new Promise(() => {}));
    const asked = read();
    clock.advance(500);
    expect(await asked).toMatchObject({ synchronousStandby: 'unknown', warnings: [] });
    clock.advance(60_000);
    const again = read();
    clock.advance(500);
    await again;
    expect(counted.reads).toBe(1);
  });

  test('stays as it was read while the database is away', async () => {
    let isAway = false;
    const { clock, counted, read } = watch(async () => {
      if (isAway) throw new StorageError('away');
      return { commit: 'on', standbys: '*' };
    });
    await read();
    isAway = true;
    clock.advance(5_000);
    expect(await read()).toMatchObject({ synchronousStandby: 'configured' });
    expect(counted.reads).toBe(2);
  });
});
