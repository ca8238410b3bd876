import type { Mutation } from './mutation.ts';

const units = ['test/domain/routing'];
const sockets = ['test/e2e/routing.test.ts'];

/** Faults of the order in which routes are tried. */
export const routingFaults: readonly Mutation[] = [
  {
    name: 'an affinity that is the same for all keys',
    file: 'src/domain/routing/policies.ts',
    find: '[keyId, model.id]',
    replace: '[model.id]',
    tests: units,
  },
  {
    name: 'an affinity that does not know the cache key of a client',
    file: 'src/domain/routing/policies.ts',
    find: "promptCacheKey ? [{ role: 'prompt_cache_key', text: promptCacheKey }] : headTurns(turns)",
    replace: 'headTurns(turns)',
    tests: sockets,
  },
  {
    name: 'an affinity that moves with every turn',
    file: 'src/domain/routing/policies.ts',
    find: 'asked === -1 ? turns.length : asked + 1',
    replace: 'turns.length',
    tests: sockets,
  },
  {
    name: 'an affinity whose mean counts routes that are down',
    file: 'src/domain/routing/policies.ts',
    find: "availability(route) === 'available'",
    replace: 'availability(route).length > 0',
    tests: units,
  },
  {
    name: 'an attempt that still counts as in progress when its answer was dropped',
    file: 'src/pipeline/attempts/watch-attempt.ts',
    find: 'if (this.#measured !== null) this.#measured.ended(this.#clock.monotonicMs(), false);',
    replace: '',
    tests: ['test/pipeline/port-faults.test.ts'],
  },
  {
    name: 'a route that comes last because of words that a client may have sent',
    file: 'src/pipeline/attempts/watch-attempt.ts',
    find: ' && ending.failure.fromMessage !== true',
    replace: '',
    tests: sockets,
  },
  {
    name: 'a route that hangs and stays the fastest',
    file: 'src/domain/routing/route-measure.ts',
    find: 'Math.max(meanMs, nowMs - this.#waitingSinceMs / this.#waiting)',
    replace: 'meanMs',
    tests: units,
  },
  {
    name: 'a failing route that gets all requests, because it has none in progress',
    file: 'src/domain/routing/policies.ts',
    find: '[(route) => failingRank(route, nowMs), loadOf]',
    replace: '[loadOf]',
    tests: units,
  },
  {
    name: 'measures of an upstream that are those of another address',
    file: 'src/composition/upstreams/kept-models.ts',
    find: 'known !== null && isSameUpstream(upstreams[upstream], previous?.config.upstreams[upstream])',
    replace: 'known !== null',
    tests: sockets,
  },
  {
    name: 'a failure of one model that counts for all models of its upstream',
    file: 'src/domain/upstreams/failure.ts',
    find: "  if (kind !== 'auth' && kind !== 'unavailable') return 'model';",
    replace: "  if (kind !== 'auth' && kind !== 'unavailable') return 'upstream';",
    tests: ['test/domain/model-health.test.ts'],
  },
  {
    name: 'a circuit that one key opens for all keys',
    file: 'src/domain/upstreams/failure-keys.ts',
    find: 'Math.min(count, countedOfKey)',
    replace: 'count',
    tests: ['test/domain/model-health.test.ts'],
  },
  {
    name: 'a route that is shown as failing after its first text',
    file: 'src/domain/upstreams/sent-request.ts',
    find: '      upstream.note(null, model, clock.now());\n      changeBoth',
    replace: '      changeBoth',
    tests: ['test/domain/model-health.test.ts'],
  },
];
