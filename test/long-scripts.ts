/** The scripts that are run by hand or at night, by their kind and name; the first of a kind needs no name. */
export const longScripts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  bench: {
    compare: 'bench/compare.ts',
    console: 'bench/console.ts',
    disk: 'bench/disk.ts',
    keys: 'bench/many-keys.ts',
    lists: 'bench/lists.ts',
    metrics: 'bench/metrics.ts',
    slots: 'bench/slots.ts',
    start: 'bench/start.ts',
    steady: 'bench/steady-load.ts',
    records: 'bench/records.ts',
    usage: 'bench/usage-year.ts',
  },
  chaos: {
    kills: 'chaos/kill.ts',
    archive: 'chaos/kill-archive.ts',
    cuts: 'chaos/cuts/run.ts',
    edge: 'chaos/hostile-edge.ts',
    everything: 'chaos/everything/run.ts',
    nodes: 'chaos/nodes/run.ts',
    outages: 'chaos/outages.ts',
    policies: 'chaos/policies/run.ts',
    readers: 'chaos/slow-readers.ts',
    upstreams: 'chaos/upstreams.ts',
    webhooks: 'chaos/kill-webhooks.ts',
  },
  model: {
    claims: 'model/run.ts',
  },
  simulate: {
    nodes: 'simulation/simulate.ts',
    drift: 'simulation/drift.ts',
    hedge: 'simulation/hedge/hedge.ts',
    limits: 'simulation/upstream-limiter/run.ts',
    routing: 'simulation/routing/run.ts',
  },
  size: {
    sources: 'size/sources.ts',
    request: 'size/request.ts',
    bundle: 'size/bundle.ts',
  },
};
