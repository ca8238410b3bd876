import type { Limits } from '../../src/domain/limits/limits.ts';
import { Chance } from './chance.ts';

/** What may be spent in each period of some milliseconds. */
export interface PlannedBudget {
  readonly amountNanos: number;
  readonly periodMs: number;
}

/** A key, and what its requests are limited to. */
export interface PlannedKey {
  readonly id: string;
  readonly limits: Limits;
  readonly credit: number;
  /** `null` for any amount. */
  readonly budget: PlannedBudget | null;
  /** The budget of the one group that keys may be in; `null` for a key without. */
  readonly group: PlannedBudget | null;
}

/** A request of a client, and what it would do where nothing stops it. */
export interface PlannedRequest {
  readonly atMs: number;
  readonly node: number;
  readonly key: PlannedKey;
  readonly mayWait: boolean;
  /** When the client leaves, in milliseconds after it asked; `null` if it stays. */
  readonly leavesMs: number | null;
  readonly holdNanos: number;
  readonly isStrict: boolean;
  readonly chargeNanos: number;
  readonly runsMs: number;
  /** How often the client asks again after a refusal, each time as another request. */
  readonly repeats: number;
}

/** A fault. Those of `lastsMs` are over after it; a process that was killed is started again then. */
export interface PlannedFault {
  readonly kind: 'kill' | 'stop' | 'pause' | 'jump' | 'cut' | 'outage';
  readonly atMs: number;
  readonly lastsMs: number;
  readonly node: number;
  /** Whether what is sent gets no answer, rather than a refusal. */
  readonly isSilent: boolean;
  /** By how much a wall clock jumps, in milliseconds. */
  readonly jumpMs: number;
}

/** How likely calls of the database go wrong, in a history. */
interface Weather {
  readonly slowCalls: number;
  readonly lostCalls: number;
  readonly hungCalls: number;
}

/** All that is decided before a history begins. */
export interface Plan {
  readonly nodes: readonly { readonly wallOffsetMs: number }[];
  readonly keys: readonly PlannedKey[];
  readonly requests: readonly PlannedRequest[];
  readonly faults: readonly PlannedFault[];
  readonly credits: readonly { readonly atMs: number; readonly key: PlannedKey; readonly nanos: number }[];
  readonly weather: Weather;
  /** When faults and requests are over, and calls of the database go well again. */
  readonly quietMs: number;
}

const hourMs = 3_600_000;
const calm: Weather = { slowCalls: 0, lostCalls: 0, hungCalls: 0 };

/** Plans the history of a seed. */
export function planHistory(seed: number): Plan {
  const chance = new Chance(seed);
  const isLong = chance.isTrue(0.15);
  const quietMs = isLong ? chance.between(40_000, 90_000) : chance.between(4_000, 20_000);
  const nodes = Array.from({ length: chance.pick([2, 2, 2, 3]) }, () => ({
    wallOffsetMs: chance.isTrue(0.5) ? 0 : chance.between(-2 * hourMs, 2 * hourMs),
  }));
  const shared = planBudget(chance, 0.4);
  const keys = Array.from({ length: chance.pick([1, 1, 2]) }, (_, number) => planKey(chance, number, shared));
  const pick = { chance, keys, nodes: nodes.length, quietMs };
  const isCalm = chance.isTrue(0.15);
  return {
    nodes,
    keys,
    requests: Array.from({ length: chance.between(5, 22) }, () => planRequest(pick)),
    faults: isCalm ? [] : Array.from({ length: chance.between(0, isLong ? 5 : 3) }, () => planFault(pick)),
    credits: Array.from({ length: chance.between(0, 2) }, () => ({
      atMs: chance.between(0, quietMs),
      key: chance.pick(keys),
      nanos: chance.between(1, 500),
    })),
    weather: isCalm || chance.isTrue(0.2) ? calm : planWeather(chance),
    quietMs,
  };
}

interface Planning {
  readonly chance: Chance;
  readonly keys: readonly PlannedKey[];
  readonly nodes: number;
  readonly quietMs: number;
}

function planBudget(chance: Chance, share: number): PlannedBudget | null {
  if (!chance.isTrue(share)) return null;
  return { amountNanos: chance.pick([30, 120, 400]), periodMs: chance.pick([1_500, 6_000, 40_000]) };
}

function planKey(chance: Chance, number: number, shared: PlannedBudget | null): PlannedKey {
  const limits = {
    concurrency: chance.pick([1, 1, 2, 3]),
    requestsPerMinute: chance.isTrue(0.35) ? chance.between(1, 6) : 1_000,
    queueWaitMs: chance.pick([200, 2_000, 10_000]),
  };
  const credit = chance.pick([0, 50, 1_000, 100_000]);
  const group = chance.isTrue(0.7) ? shared : null;
  return { id: `key-${number}`, limits, credit, budget: planBudget(chance, 0.5), group };
}

function planRequest({ chance, keys, nodes, quietMs }: Planning): PlannedRequest {
  const isBurst = chance.isTrue(0.3);
  return {
    atMs: isBurst ? Math.floor(quietMs / 3) + chance.between(0, 5) : chance.between(0, quietMs),
    node: chance.between(0, nodes - 1),
    key: chance.pick(keys),
    mayWait: chance.isTrue(0.4),
    leavesMs: chance.isTrue(0.25) ? chance.between(0, 2_000) : null,
    holdNanos: chance.pick([0, 1, 20, 100]),
    isStrict: chance.isTrue(0.5),
    chargeNanos: chance.pick([0, 1, 7, 60, 150]),
    runsMs: chance.pick([0, 5, 100, 500, 1_000, 3_000, 8_000, 17_000]) + chance.between(0, 50),
    repeats: chance.pick([0, 0, 1, 6]),
  };
}

function planFault({ chance, nodes, quietMs }: Planning): PlannedFault {
  const kind = chance.pick(['kill', 'kill', 'stop', 'pause', 'pause', 'jump', 'cut', 'outage'] as const);
  const atMs = chance.between(500, Math.max(1_000, quietMs - 500));
  const longest = Math.min(35_000, 2 * quietMs);
  return {
    kind,
    atMs,
    lastsMs: chance.isTrue(0.6) ? chance.between(50, 4_000) : chance.between(4_000, longest),
    node: chance.between(0, nodes - 1),
    isSilent: chance.isTrue(0.4),
    jumpMs: chance.between(-3 * hourMs, 3 * hourMs),
  };
}

function planWeather(chance: Chance): Weather {
  return {
    slowCalls: chance.pick([0, 0.02, 0.1]),
    lostCalls: chance.pick([0.005, 0.02, 0.08]),
    hungCalls: chance.pick([0, 0.003, 0.01]),
  };
}
