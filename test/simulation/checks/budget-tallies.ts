import type { BudgetTerms, CountedBudget } from '../../../src/domain/budgets/budget.ts';
import type { Counts } from '../counts.ts';

/** What the arrivals of units add up to in one period of a budget. */
interface Tally {
  spent: number;
  held: number;
}

/** Adds up every period of every budget for itself, and keeps which is the latest that anything began in. */
export class BudgetTallies {
  readonly #counts: Counts;
  readonly #periods = new Map<string, Map<number, Tally>>();
  readonly #holds = new Map<string, readonly { readonly tally: Tally; readonly hold: number }[]>();

  constructor(counts: Counts) {
    this.#counts = counts;
  }

  /** A request asks for a hold in a period; returns how much there is, in the latest one. */
  asked({ id, startMs, limitNanos }: BudgetTerms): number {
    const hadAny = (this.#periods.get(id)?.size ?? 0) > 0;
    const isLater = hadAny && startMs > this.current(id).startMs;
    if (isLater) this.#counts['budgets that were refilled']++;
    if (hadAny && startMs < this.current(id).startMs)
      this.#counts['requests in a later period than their clock says']++;
    this.#tally(id, startMs);
    const { spent, held } = this.current(id);
    return limitNanos - spent - held;
  }

  held(id: string, requestId: string, hold: number): void {
    const tally = this.#tally(id, this.current(id).startMs);
    tally.held += hold;
    this.#holds.set(requestId, [...(this.#holds.get(requestId) ?? []), { tally, hold }]);
  }

  givenBack(requestId: string): void {
    const held = this.#holds.get(requestId) ?? [];
    this.#holds.delete(requestId);
    for (const { tally, hold } of held) tally.held -= hold;
  }

  charged({ id, startMs }: CountedBudget, nanos: number): void {
    if (startMs < this.current(id).startMs) this.#counts['charges for a period that was over']++;
    this.#tally(id, startMs).spent += nanos;
  }

  /** The latest period of a budget. */
  current(id: string): Tally & { readonly startMs: number } {
    const periods = [...(this.#periods.get(id) ?? [])];
    const [startMs, tally] = periods.toSorted(([one], [other]) => other - one)[0] ?? [
      0,
      { spent: 0, held: 0 },
    ];
    return { ...tally, startMs };
  }

  #tally(id: string, startMs: number): Tally {
    const periods = this.#periods.get(id) ?? new Map<number, Tally>();
    this.#periods.set(id, periods);
    const tally = periods.get(startMs) ?? { spent: 0, held: 0 };
    // A time before the latest one began no period.
    if (periods.size === 0 || startMs > Math.max(...periods.keys())) periods.set(startMs, tally);
    return tally;
  }
}
