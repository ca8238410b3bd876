import type { Mutation } from './mutation.ts';

const open = 'src/storage/records/open-record.ts';
const settle = 'src/storage/records/settle-record.ts';
const slots = 'src/pipeline/admission/take-slots.ts';
const conformance = ['test/conformance/budgets.test.ts'];
const sockets = ['test/e2e/groups.test.ts'];

/** Faults of groups, whose keys share a budget and slots, and of the events of budgets. */
export const groupFaults: readonly Mutation[] = [
  {
    name: 'a group whose budget is not asked for room where its key has one of its own',
    file: open,
    find: "['balance', ...owners.map(roomOf)]",
    replace: "['balance', ...owners.slice(0, 1).map(roomOf)]",
    tests: conformance,
  },
  {
    name: 'a group in whose budget nothing is set aside where its key has one of its own',
    file: open,
    find: '...owners.map(\n        (owner) => `UPDATE budgets SET held',
    replace: '...owners.slice(0, 1).map(\n        (owner) => `UPDATE budgets SET held',
    tests: conformance,
  },
  {
    name: 'a group whose budget is not charged where its key has one of its own',
    file: 'src/storage/records/settle-record.ts',
    find: '...budgets.map(({ change }) => change),',
    replace: '...budgets.slice(0, 1).map(({ change }) => change),',
    tests: conformance,
  },
  {
    name: 'a group that counts in the period of its key',
    file: settle,
    find: 'values: `, :${owner}_budget, :${owner}_start$',
    replace: 'values: `, :${owner}_budget, :key_start$',
    tests: conformance,
  },
  {
    name: 'a group whose holds stay when its requests are closed as lost',
    file: 'src/storage/records/record-store.ts',
    find: '...budgetOwners.map(giveBackIn),',
    replace: "...budgetOwners.filter((owner) => owner === 'key').map(giveBackIn),",
    tests: conformance,
  },
  {
    name: 'a closed record that does not say in which budget of a group it counts',
    file: 'src/storage/records/record-store.ts',
    find: 'SELECT ${kept} FROM open_rows',
    replace: "SELECT ${raw(kept.sql.replace('group_budget', 'NULL'))} FROM open_rows",
    tests: conformance,
  },
  {
    name: 'a group of which the audit adds up the records of keys alone',
    file: 'src/storage/records/open-record.ts',
    find: "groupNameOf(id) === null ? 'key' : 'group'",
    replace: "'key'",
    tests: conformance,
  },
  {
    name: 'an event of a level that does not come where the charge begins the period',
    file: 'src/storage/sqlite/schema.ts',
    find: 'CREATE TRIGGER budget_reached_level_by_insert AFTER INSERT ON budgets WHEN NEW.level > 0 BEGIN ${addBudgetLevel} END;',
    replace: '',
    tests: conformance,
  },
  {
    name: 'an event of a level that does not come again with the next period',
    file: 'src/storage/schema/triggers.ts',
    find: "'budget.level:' || NEW.id || ':' || NEW.period_start ||",
    replace: "'budget.level:' || NEW.id ||",
    tests: conformance,
  },
  {
    name: 'an event of a level although no webhook wants it',
    file: 'src/storage/schema/triggers.ts',
    find: 'WHERE event_settings.id = 1 AND budget_levels = 1',
    replace: 'WHERE event_settings.id = 1',
    tests: conformance,
  },
  {
    name: 'a level that is the lowest of those that were reached',
    file: settle,
    find: 'cases.toReversed()',
    replace: 'cases',
    tests: conformance,
  },
  {
    name: 'a slot of a group that a request keeps while it waits for one of its key',
    file: slots,
    find: '    await releaseGroupSlot(exchange, ports);\n  }\n  telemetry.waitBegan',
    replace: '  }\n  telemetry.waitBegan',
    tests: sockets,
  },
  {
    name: 'a slot of a group that is not given back at the end',
    file: slots,
    find: 'if (exchange.groupSlot !== null) await releaseGroupSlot',
    replace: 'if (exchange.groupSlot === null) await releaseGroupSlot',
    tests: sockets,
  },
  {
    name: 'a start that is counted before the group refuses',
    file: slots,
    find: 'if (full !== null && !mayWait) return full;',
    replace:
      'if (full !== null && !mayWait) return (await limiter.acquire(keyId, requestId, limits, interruption.signal)), full;',
    tests: sockets,
  },
  {
    name: 'a request that waited and keeps the slot of the group in which its key was',
    file: 'src/pipeline/admission/admit.ts',
    find: 'const full = await changeGroupSlot(group, limits.queueWaitMs, exchange, ports);',
    replace: 'const full = null;',
    tests: sockets,
  },
  {
    name: 'a raised limit of a group by which no queued request gets a slot',
    file: 'src/composition/limiter-services.ts',
    find: '...ofGroups.map((group) => [group.id, limitsOfGroup(group, 0)] as const),',
    replace: '',
    tests: sockets,
  },
  {
    name: 'a raised limit of a group that does not reach the queue that nodes share',
    file: 'src/coordination/waiting-requests.ts',
    find: 'group === null ? [] : [[group.id, limitsOfGroup(group, 0).concurrency]]',
    replace: '[]',
    tests: ['test/e2e/group-nodes.long.test.ts'],
  },
  {
    name: 'a group that is counted twice in the list of requests of other nodes',
    file: 'src/storage/postgres/nodes/running-elsewhere.ts',
    find: " AND NOT starts_with(key_id, '${raw(groupIdPrefix)}')",
    replace: '',
    tests: ['test/e2e/group-nodes.long.test.ts'],
  },
];
