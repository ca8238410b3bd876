import type { GrantedQuota, QuotaStore, QuotaDemand } from '../../src/domain/ports/quotas.ts';

interface Row extends QuotaDemand {
  readonly owner: string;
  turn: number;
  quota: number;
  lostMs: number | null;
}

/** Quotas as the database keeps them, in plain lists: what the functions in SQL must do. */
export interface MemoryQuotas {
  /** What a process sees of them under its lease. */
  storeOf(owner: () => string): QuotaStore;
  /** One call: everything that the database does for it. */
  renew(owner: string, turn: number, demands: readonly QuotaDemand[]): readonly GrantedQuota[];
}

const [keptMs, roundMs] = [65_000, 5_000];

/** `nowMs` is the time of the database, and `hasLease` what it says of an owner. */
export function createMemoryQuotas(nowMs: () => number, hasLease: (owner: string) => boolean): MemoryQuotas {
  let rows: readonly Row[] = [];

  const renewOne = (owner: string, turn: number, demand: QuotaDemand): readonly GrantedQuota[] => {
    const { upstream, limit, keeps, needs, wants } = demand;
    const all = rows.filter((row) => row.upstream === upstream && row.limit === limit);
    const mine = all.find((row) => row.owner === owner);
    if (mine !== undefined && mine.turn >= turn) return [];
    const own: Row = { ...demand, owner, turn, quota: keeps, lostMs: mine?.lostMs ?? null };
    const others = all.filter((row) => row !== mine);
    rows = [...rows.filter((row) => row !== mine), own];
    const live = [own, ...others].filter(({ lostMs }) => lostMs === null);
    const smallest = Math.min(...live.map(({ most }) => most));
    const capacity = Math.max(0, smallest - sum(others.filter(({ lostMs }) => lostMs !== null)));
    const sorted = live.toSorted((a, b) => (a.owner < b.owner ? -1 : 1));
    const needed = sorted.map((row) => Math.min(capacity, row.needs));
    const beside = sorted.map((row, at) => Math.min(capacity, row.wants) - (needed[at] ?? 0));
    const round = Math.floor(nowMs() / roundMs);
    const parts = fairParts(needed, capacity, round);
    const left = capacity - parts.reduce((total, part) => total + part, 0);
    const more = fairParts(beside, left, round);
    const at = sorted.indexOf(own);
    const target = (parts[at] ?? 0) + (more[at] ?? 0);
    own.quota = Math.max(keeps, Math.min(target, smallest - sum(others)));
    // A process needs no more than it wants.
    if (needs > wants) throw new Error('a demand of more than is wanted');
    return [{ upstream, limit, quota: own.quota, target }];
  };

  const freeLost = (): void => {
    for (const row of rows) if (!hasLease(row.owner)) row.lostMs ??= nowMs();
    rows = rows.filter(
      ({ limit, lostMs }) => lostMs === null || (limit !== 'maxInFlight' && lostMs > nowMs() - keptMs),
    );
  };

  const memory: MemoryQuotas = {
    storeOf: (owner) => ({
      owner,
      renew: async (turn, demands) => memory.renew(owner(), turn, demands),
    }),
    renew(owner, turn, demands) {
      if (!hasLease(owner)) return [];
      const granted = demands.flatMap((demand) => renewOne(owner, turn, demand));
      freeLost();
      return granted;
    },
  };
  return memory;
}

/**
 * Deals a capacity out, one to each in turn that has less than its amount. The last turn may be incomplete: it begins with
 * another one in each round.
 */
function fairParts(amounts: readonly number[], capacity: number, round: number): readonly number[] {
  const parts = amounts.map(() => 0);
  for (let left = capacity; ;) {
    const open = amounts.flatMap((amount, at) => (amount > (parts[at] ?? 0) ? [at] : []));
    if (open.length === 0 || left === 0) return parts;
    const isWhole = left >= open.length;
    for (const [rank, at] of open.entries())
      if (isWhole || (rank + round) % open.length < left) parts[at] = (parts[at] ?? 0) + 1;
    if (!isWhole) return parts;
    left -= open.length;
  }
}

function sum(rows: readonly Row[]): number {
  return rows.reduce((total, { quota }) => total + quota, 0);
}
