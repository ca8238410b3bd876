import type { Mutation } from './mutation.ts';

const quota = 'src/coordination/quotas/own-quota.ts';
const agreed = 'src/coordination/quotas/agreed-quotas.ts';
const stored = 'src/storage/postgres/nodes/quota-store.ts';
const units = ['test/coordination/quotas.test.ts'];
const database = ['test/storage/postgres-quotas.long.test.ts'];

/** Faults of the quotas that processes have in the limits of upstreams. */
export const quotaFaults: readonly Mutation[] = [
  {
    name: 'a quota that is given back before it is given up',
    file: quota,
    find: 'this.#quota = keeps;',
    replace: '',
    tests: units,
  },
  {
    name: 'a quota that is less than what is used',
    file: quota,
    find: 'Math.max(used, Math.min(this.usable, wants))',
    replace: 'Math.min(this.usable, wants)',
    tests: units,
  },
  {
    name: 'a quota of which more is used than is fair',
    file: quota,
    find: 'Math.min(this.#quota, this.#target);',
    replace: 'this.#quota;',
    tests: units,
  },
  {
    name: 'a quota that an idle process keeps',
    file: quota,
    find: 'peak === 0 ? 0 :',
    replace: '',
    tests: units,
  },
  {
    name: 'a quota that is used without a lease',
    file: agreed,
    find: 'this.#options.holdsLease() && this.#store.owner() === this.#owner;',
    replace: 'this.#store.owner() === this.#owner;',
    tests: units,
  },
  {
    name: 'a quota that outlives the end of its lease',
    file: agreed,
    find: 'for (const quota of this.#quotas.values()) quota.lose();',
    replace: '',
    tests: units,
  },
  {
    name: 'a quota that has grown, and serves no queue',
    file: agreed,
    find: 'if (grown.length > 0) this.#limiters?.serve();',
    replace: '',
    tests: units,
  },
  {
    name: 'a process that stops with quotas which it does not use',
    file: agreed,
    find: 'if (last.length > 0 && this.#holds)',
    replace: 'if (last.length < 0)',
    tests: units,
  },
  {
    name: 'a call on quotas that undoes a later one',
    file: stored,
    find: 'WHERE own.turn < excluded.turn;',
    replace: ';',
    tests: database,
  },
  {
    name: 'quotas that are renewed without a lock',
    file: stored,
    find: 'PERFORM pg_advisory_xact_lock(${quotaLock}, hashtext(demanded.upstream));',
    replace: '',
    tests: database,
  },
  {
    name: 'quotas that add up to more than the limit',
    file: stored,
    find: 'least(own_target, smallest - others)',
    replace: 'own_target',
    tests: database,
  },
  {
    name: 'quotas of a minute that end with the lease',
    file: stored,
    find: 'lost.lost_at <= now_at - ${keptMinuteMs}',
    replace: 'TRUE',
    tests: database,
  },
  {
    name: 'gateways that know nothing of each other before an upstream',
    file: 'src/composition/health-and-events.ts',
    find: '    quotas,\n',
    replace: '    quotas: null,\n',
    tests: ['test/e2e/upstream-limit-nodes.long.test.ts'],
  },
];
