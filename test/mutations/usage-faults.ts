import type { Mutation } from './mutation.ts';

const property = 'test/conformance/histories.test.ts';

/** Faults of the sums of usage. */
export const usageFaults: readonly Mutation[] = [
  {
    name: 'usage that keeps what a record said before it was settled late',
    file: 'src/storage/sqlite/schema.ts',
    find: "BEGIN ${countRecord('OLD', '-')} ",
    replace: 'BEGIN ',
    tests: [property],
  },
  {
    name: 'usage of a rolled day that a late settlement does not mark',
    file: 'src/storage/schema/triggers.ts',
    find: "SET state = 'stale'",
    replace: 'SET state = state',
    tests: [property],
  },
  {
    name: 'usage of a month that stays rolled up although one of its days is begun again',
    file: 'src/storage/usage/usage-rollups.ts',
    find: "`UPDATE usage_periods SET state = 'stale' WHERE period = 'month'",
    replace: "`UPDATE usage_periods SET state = state WHERE period = 'month'",
    tests: [property],
  },
  {
    name: 'usage of a month that is read although one of its days is out of date',
    file: 'src/storage/usage/usage-plan.ts',
    find: '.filter((start) => !outdated.has(start))',
    replace: '',
    tests: [property],
  },
  {
    name: 'usage of a day that waits for no transaction which may not have seen it begun',
    file: 'src/storage/postgres/schema.ts',
    find: 'CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)',
    replace: 'CAST(9000000000000000 AS BIGINT)',
    tests: ['test/storage/postgres-usage.long.test.ts'],
  },
  {
    name: 'usage by groups that is read from sums without groups',
    file: 'src/storage/usage/usage-kinds.ts',
    find: '[...needed].every((one) => dimensions',
    replace: "[...needed].every((one) => one === 'group' || dimensions",
    tests: [property],
  },
  {
    name: 'refusals that the database did not take, and that are not offered again',
    file: 'src/background/count-refusals.ts',
    find: 'taken.slice(at).forEach(count);',
    replace: '',
    tests: ['test/background/count-refusals.test.ts'],
  },
  {
    name: 'refusals that are not added at the end of a process',
    file: 'src/background/count-refusals.ts',
    find: 'if (task.hasBegun) await add();',
    replace: '',
    tests: ['test/background/count-refusals.test.ts'],
  },
];
