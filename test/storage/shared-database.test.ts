import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Row } from '../../src/storage/engine.ts';
import { readDatabaseId, watchSharedDatabase } from '../../src/storage/postgres/shared-database.ts';
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

describe('the id of a database', () => {
  /** Reads it from a database that answers with these, one after the other, as soon as the clock has passed what it waits for. */
  async function read(...answers: readonly (string | StorageError)[]): Promise<string> {
    const clock = createFakeClock();
    let asked = 0;
    const lookUp = async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)];
      if (answer instanceof StorageError) throw answer;
      return [[{ id: answer ?? '' }]];
    };
    const reading = readDatabaseId({ lookUp }, clock);
    reading.catch(() => {});
    for (let tries = 0; tries < 200; tries++) {
      await setImmediate();
      clock.advance(100);
    }
    return reading;
  }

  test('is read by a start also where the connection is lost meanwhile', async () => {
    const lost = new StorageError('terminating connection due to administrator command', 'unavailable');
    expect(await read(lost, lost, 'a1b2')).toBe('a1b2');
  });

  test('is given up by a start once the connection was lost for ten seconds', async () => {
    await expect(read(new StorageError('connection refused', 'unavailable'))).rejects.toThrow(
      'connection refused',
    );
  });

  test('is not asked for anew where the database refuses to tell it', async () => {
    await expect(read(new StorageError('permission denied', 'unknown'), 'a1b2')).rejects.toThrow(
      'permission denied',
    );
  });
});
