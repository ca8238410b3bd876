import type { Mutation } from './mutation.ts';

const claim = 'src/coordination/shares/share-claim.ts';
const settled = 'src/coordination/shares/settled-room-shares.ts';
const stored = 'src/storage/postgres/nodes/share-functions.ts';
const units = ['test/coordination/room-shares.test.ts'];
const database = ['test/storage/postgres-room-shares.long.test.ts'];

/** Faults of the shares that processes have in the limits of upstreams. */
export const shareFaults: readonly Mutation[] = [
  {
    name: 'a share that is given back before it is given up',
    file: claim,
    find: 'this.#share = keeps;',
    replace: '',
    tests: units,
  },
  {
    name: 'a share that is less than what is used',
    file: claim,
    find: 'Math.max(used, Math.min(this.usable, wants))',
    replace: 'Math.min(this.usable, wants)',
    tests: units,
  },
  {
    name: 'a share of which more is used than is fair',
    file: claim,
    find: 'Math.min(this.#share, this.#target);',
    replace: 'this.#share;',
    tests: units,
  },
  {
    name: 'a share that an idle process keeps',
    file: claim,
    find: 'peak === 0 ? 0 :',
    replace: '',
    tests: units,
  },
  {
    name: 'a share that is used without a lease',
    file: settled,
    find: 'this.#options.holdsLease() && this.#store.owner() === this.#owner;',
    replace: 'this.#store.owner() === this.#owner;',
    tests: units,
  },
  {
    name: 'a share that outlives the end of its lease',
    file: settled,
    find: 'for (const claim of this.#claims.values()) claim.lose();',
    replace: '',
    tests: units,
  },
  {
    name: 'a share that has grown, and serves no queue',
    file: settled,
    find: 'if (grown.length > 0) this.#rooms?.serve();',
    replace: '',
    tests: units,
  },
  {
    name: 'a process that stops with shares which it does not use',
    file: settled,
    find: 'if (last.length > 0 && this.#holds)',
    replace: 'if (last.length < 0)',
    tests: units,
  },
  {
    name: 'a call on shares that undoes a later one',
    file: stored,
    find: 'WHERE own.turn < excluded.turn;',
    replace: ';',
    tests: database,
  },
  {
    name: 'shares that are settled without a lock',
    file: stored,
    find: 'PERFORM pg_advisory_xact_lock(${shareLock}, hashtext(asked.upstream));',
    replace: '',
    tests: database,
  },
  {
    name: 'shares that add up to more than the limit',
    file: stored,
    find: 'least(own_target, smallest - others)',
    replace: 'own_target',
    tests: database,
  },
  {
    name: 'shares of a minute that end with the lease',
    file: stored,
    find: 'lost.lost_at <= now_at - ${keptMinuteMs}',
    replace: 'TRUE',
    tests: database,
  },
  {
    name: 'gateways that know nothing of each other before an upstream',
    file: 'src/composition/health-and-events.ts',
    find: '    shares,\n',
    replace: '    shares: null,\n',
    tests: ['test/e2e/room-nodes.long.test.ts'],
  },
];
