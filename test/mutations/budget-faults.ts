import type { Mutation } from './mutation.ts';

const open = 'src/storage/records/open-record.ts';
const settle = 'src/storage/records/settle-record.ts';
const conformance = ['test/conformance/budgets.test.ts'];
const sockets = ['test/e2e/budgets.test.ts'];

/** Faults of budgets that refill. */
export const budgetFaults: readonly Mutation[] = [
  {
    name: 'a budget that is refilled by every request of its period',
    file: open,
    find: 'WHERE budgets.period_start < excluded.period_start',
    replace: 'WHERE budgets.period_start <= excluded.period_start',
    tests: conformance,
  },
  {
    name: 'a budget that a clock which is behind puts back into an earlier period',
    file: open,
    find: 'WHERE budgets.period_start < excluded.period_start',
    replace: 'WHERE budgets.period_start <> excluded.period_start',
    tests: conformance,
  },
  {
    name: 'a budget that is never refilled',
    file: open,
    find: 'WHERE budgets.period_start < excluded.period_start',
    replace: 'WHERE 1 = 0',
    tests: conformance,
  },
  {
    name: 'an open request that names the period of its own clock, where a later one is in the row',
    file: open,
    find: 'owners.map((owner) => `, :${owner}_budget, CAST(@${owner}_period_start AS BIGINT)`);',
    replace: 'owners.map((owner) => `, :${owner}_budget, :${owner}_start`);',
    tests: conformance,
  },
  {
    name: 'a hold that leaves out what other requests hold in the budget',
    file: open,
    find: ' - of_${owner}.spent - of_${owner}.held`',
    replace: ' - of_${owner}.spent`',
    tests: conformance,
  },
  {
    name: 'a charge that is counted in the period after the one in which its request began',
    file: settle,
    find: '       period_start = excluded.period_start, period_end = excluded.period_end\n     WHERE budgets.period_start <= :${owner}_start`',
    replace: '       id = excluded.id`',
    tests: conformance,
  },
  {
    name: 'a hold that stays in the budget after its request was settled',
    file: settle,
    find: 'ELSE budgets.held - ${heldHold} END',
    replace: 'ELSE budgets.held END',
    tests: conformance,
  },
  {
    name: 'a charge that is lost because the database has forgotten that its period began',
    file: settle,
    find: 'WHERE budgets.period_start <= :${owner}_start`',
    replace: 'WHERE budgets.period_start = :${owner}_start`',
    tests: conformance,
  },
  {
    name: 'a hold that stays in the budget after its request was closed as lost',
    file: 'src/storage/records/record-store.ts',
    find: 'UPDATE budgets SET held = budgets.held - closed.hold',
    replace: 'UPDATE budgets SET held = budgets.held',
    tests: conformance,
  },
  {
    name: 'a warning level that falls again within a period',
    file: settle,
    find: 'WHEN budgets.level < ${levelOf(sumThen)} THEN ${levelOf(sumThen)} ELSE budgets.level END',
    replace: 'ELSE excluded.level END',
    tests: conformance,
  },
  {
    name: 'a week that begins on Sunday',
    file: 'src/domain/budgets/calendar.ts',
    find: 'day.dayOfWeek - 1',
    replace: 'day.dayOfWeek % 7',
    tests: ['test/domain/budgets/calendar.test.ts'],
  },
  {
    name: 'a day that always has 24 hours',
    file: 'src/domain/budgets/calendar.ts',
    find: 'endMs: startOf(first.add(lengths[period])) };',
    replace: 'endMs: startOf(first) + 86_400_000 };',
    tests: ['test/domain/budgets/calendar.test.ts'],
  },
  {
    name: 'a request that is sent upstream before its hold in the budget is known',
    file: 'src/pipeline/run-request.ts',
    find: 'isSpendingLimited(key, admission.group) ||',
    replace: 'key.hasBalance ||',
    tests: sockets,
  },
  {
    name: 'a settlement in the period of its own clock, where a later one was in the row',
    file: 'src/pipeline/money/reserve.ts',
    find: 'const { startMs, endMs } = periods[at] ?? terms;',
    replace: 'const { startMs, endMs } = terms;',
    tests: sockets,
  },
];
