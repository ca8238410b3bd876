import fc from 'fast-check';
import type { UpstreamLimit } from '../../src/domain/ports/quotas.ts';
import { createMemoryQuotas } from './memory-quotas.ts';
import type { MemoryQuotas } from './memory-quotas.ts';
import { QuotaWorld } from './quota-world.ts';
import type { Fate, Limits, QuotaDatabase } from './quota-world.ts';

/** Quotas in plain lists, as a database without delay. */
export function memoryDatabase(): QuotaDatabase & { readonly memory: MemoryQuotas } {
  let nowMs = 0;
  let owners: ReadonlySet<string> = new Set();
  const memory = createMemoryQuotas(
    () => nowMs,
    (owner) => owners.has(owner),
  );
  return {
    memory,
    renew: async (owner, turn, demands) => memory.renew(owner, turn, demands),
    setOwners: async (found) => void (owners = found),
    setTime: async (ms) => void (nowMs = ms),
  };
}

const fates: readonly Fate[] = ['prompt', 'unanswered', 'never done', 'done late', 'answered late', 'slow'];

const someLimits = fc.record<Limits>(
  {
    maxInFlight: fc.integer({ min: 1, max: 9 }),
    requestsPerMinute: fc.integer({ min: 1, max: 30 }),
    tokensPerMinute: fc.integer({ min: 5, max: 60 }),
  },
  { requiredKeys: ['maxInFlight'] },
);

/** What happens to one of the processes. */
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('arrive' as const), tokens: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('finish' as const), index: fc.nat(20) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.constantFrom(20, 100, 100, 300, 300, 1_100, 1_100, 6_000, 6_000, 18_000, 40_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('fate' as const), fate: fc.constantFrom(...fates) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), index: fc.nat(5) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('cut' as const, 'mend' as const, 'kill' as const) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('limits' as const), limits: someLimits }) },
);

/** A history of some processes. */
export const quotaHistory = (maxSteps: number) =>
  fc.record({
    limits: someLimits,
    nodes: fc.integer({ min: 1, max: 4 }),
    steps: fc.array(fc.tuple(fc.nat(3), step), { minLength: 5, maxLength: maxSteps, size: 'max' }),
  });

type History = ReturnType<typeof quotaHistory> extends fc.Arbitrary<infer Value> ? Value : never;

/** What a history led to: each empty where all is right. */
export interface Played {
  /** Starts beyond a limit. */
  readonly excesses: readonly string[];
  /** What idle processes still have. */
  readonly kept: readonly string[];
  /** What one process that alone needs everything does not get within two rounds. */
  readonly missing: readonly string[];
}

/** Plays a history, lets all of it end, and has one process ask for everything. */
export async function playQuotas(
  database: QuotaDatabase,
  { limits, nodes, steps }: History,
): Promise<Played> {
  const world = new QuotaWorld(database, limits);
  for (let count = 0; count < nodes; count++) await world.add();
  for (const [at, taken] of steps) {
    await takeStep(world, at, taken);
    await world.settled();
    world.tightenBounds();
  }
  for (const node of world.nodes) node.fate = 'prompt';
  await world.releaseAll();
  for (const node of world.nodes) {
    node.isCut &&= !node.isLive;
    node.waiting = [];
    while (node.running > 0) node.finish(0);
  }
  await world.pass(90_000);
  world.tightenBounds();
  const live = world.nodes.filter(({ isLive }) => isLive);
  const names = Object.keys(world.limits) as UpstreamLimit[];
  const kept = live.flatMap((node) =>
    names.filter((limit) => node.mayHave(limit) > 0).map((limit) => `${node.owner} keeps ${limit}`),
  );
  const [one] = live;
  for (let count = 0; count < 100; count++) one?.arrive(1);
  await world.pass(2_200);
  const missing = one === undefined || isAtALimit(world) ? [] : [`${world.inUse('maxInFlight')} run`];
  for (const node of world.nodes) await node.quotas.close();
  return { excesses: world.excesses, kept, missing };
}

function isAtALimit(world: QuotaWorld): boolean {
  return (Object.entries(world.limits) as [UpstreamLimit, number][]).some(
    ([limit, most]) => world.inUse(limit) >= most,
  );
}

async function takeStep(world: QuotaWorld, at: number, taken: History['steps'][number][1]): Promise<void> {
  const live = world.nodes.filter(({ isLive }) => isLive);
  const node = live[at % live.length];
  if (node === undefined) return;
  if (taken.kind === 'arrive') node.arrive(taken.tokens);
  else if (taken.kind === 'finish') node.finish(taken.index);
  else if (taken.kind === 'fate') node.fate = taken.fate;
  else if (taken.kind === 'release') await world.release(taken.index);
  else if (taken.kind === 'cut' || taken.kind === 'mend') node.isCut = taken.kind === 'cut';
  else if (taken.kind === 'limits') world.setLimits(taken.limits);
  else if (taken.kind === 'kill') {
    node.kill();
    await world.add();
  } else if (taken.kind === 'pass') await world.pass(taken.ms);
}
