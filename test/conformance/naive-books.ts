import { formatUsd, parseUsd } from '../../src/shared/money.ts';
import type { Row } from '../../src/storage/engine.ts';
import { expectAtMost, expectEqual } from '../support/assertions.ts';
import { referencePeriod } from '../support/reference-calendar.ts';

/** A budget as the config and the admin API take it. */
export interface BudgetInput {
  readonly amount: string;
  readonly per: 'day' | 'week' | 'month';
  readonly timeZone: string;
}

/** What is shown of a budget. */
interface Shown {
  readonly amount: string;
  readonly per: string;
  readonly time_zone: string;
  readonly spent: string;
  readonly held: string;
  readonly available: string;
  readonly since: string;
}

/** What is shown of the budgets of a key and of its group; `null` for none. */
export interface ShownBudgets {
  readonly own: Shown | null;
  readonly group: Shown | null;
}

/** A request in the budgets in which it began: the start of its period in each of them. */
interface Counted {
  readonly periods: ReadonlyMap<string, number>;
  readonly charge: number;
  hold: number;
  state: 'open' | 'lost' | 'settled';
}

/** All requests of a history as a list, and what they add up to. */
export class NaiveBooks {
  nowMs: number;
  /** The groups of the config with their budgets. */
  readonly groups = new Map<string, BudgetInput | null>();
  readonly #keys = new Map<string, { budget: BudgetInput | null; group: string | null }>();
  readonly #requests = new Map<number, Counted>();

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  addKey(id: string, budget: BudgetInput | null): void {
    this.#keys.set(id, { budget, group: null });
  }

  keyOf(id: string): { budget: BudgetInput | null; group: string | null } {
    const found = this.#keys.get(id);
    if (found === undefined) throw new Error(`there is no key ${id}`);
    return found;
  }

  /** The status that a request of a key gets now. */
  decide(id: string): 200 | 402 | 403 {
    const { group } = this.keyOf(id);
    if (group !== null && !this.groups.has(group)) return 403;
    const hasRoom = this.#budgetsOf(id).every(([owner, budget]) => {
      const { spent, held } = this.#sumsOf(owner, budget);
      return nanosOf(budget) - spent - held >= 1;
    });
    return hasRoom ? 200 : 402;
  }

  /** A request of a key begins. */
  begin(number: number, id: string, charge: number): void {
    const periods = this.#budgetsOf(id).map(
      ([owner, budget]) => [budgetIdOf(owner, budget), this.#sumsOf(owner, budget).startMs] as const,
    );
    this.#requests.set(number, { periods: new Map(periods), charge, hold: 0, state: 'open' });
  }

  /** Takes what a request of a key holds from what is shown behind its beginning: one amount, with room in each budget. */
  hold(number: number, id: string, shown: ShownBudgets): void {
    const before = this.shownOf(id);
    const [hold = 0, other = hold] = (['own', 'group'] as const).flatMap((owner) => {
      const [now, then] = [shown[owner], before[owner]];
      if (now === null || then === null) return [];
      const added = (parseUsd(now.held) ?? 0) - (parseUsd(then.held) ?? 0);
      expectAtMost(1, added);
      expectAtMost(added, parseUsd(then.available) ?? 0);
      return [added];
    });
    expectEqual(hold, other);
    this.#request(number).hold = hold;
  }

  lose(number: number): void {
    this.#request(number).state = 'lost';
  }

  settle(number: number): void {
    this.#request(number).state = 'settled';
  }

  #request(number: number): Counted {
    const found = this.#requests.get(number);
    if (found === undefined) throw new Error(`question ${number} did not begin`);
    return found;
  }

  /** What is shown of the budgets of a key and of its group. */
  shownOf(id: string): ShownBudgets {
    const { budget, group } = this.keyOf(id);
    return {
      own: budget === null ? null : this.#shown(id, budget),
      group: group === null ? null : this.groupShown(group),
    };
  }

  groupShown(name: string): Shown | null {
    const budget = this.groups.get(name) ?? null;
    return budget === null ? null : this.#shown(groupIdOf(name), budget);
  }

  /** Compares the records of the database, request by request in no order, with the list. */
  checkRecords(rows: readonly Row[]): void {
    const told = rows.map((row) => {
      const periods = [
        [row['budget'], row['budget_period']],
        [row['group_budget'], row['group_period']],
      ].flatMap(([budget, period]) => (budget === null ? [] : [`${String(budget)} ${Number(period)}`]));
      return `${periods.join()}: ${Number(row['charge'])}`;
    });
    const expected = [...this.#requests.values()].map(
      ({ periods, charge, state }) =>
        `${[...periods].map(([budget, period]) => `${budget} ${period}`).join()}: ${state === 'settled' ? charge : 0}`,
    );
    expectEqual(told.toSorted(), expected.toSorted());
  }

  #budgetsOf(id: string): readonly (readonly [string, BudgetInput])[] {
    const { budget, group } = this.keyOf(id);
    const shared = group === null ? null : (this.groups.get(group) ?? null);
    return [
      ...(budget === null ? [] : [[id, budget] as const]),
      ...(group === null || shared === null ? [] : [[groupIdOf(group), shared] as const]),
    ];
  }

  #shown(owner: string, budget: BudgetInput): Shown {
    const { spent, held, startMs } = this.#sumsOf(owner, budget);
    return {
      amount: formatUsd(nanosOf(budget)),
      per: budget.per,
      time_zone: budget.timeZone,
      spent: formatUsd(spent),
      held: formatUsd(held),
      available: formatUsd(nanosOf(budget) - spent - held),
      since: new Date(startMs).toISOString(),
    };
  }

  /** What the requests of the current period add up to: the latest one that a request began, or that of the clock. */
  #sumsOf(owner: string, budget: BudgetInput) {
    const id = budgetIdOf(owner, budget);
    const begun = [...this.#requests.values()].filter(({ periods }) => periods.has(id));
    const now = referencePeriod(this.nowMs, budget.per, budget.timeZone);
    const startMs = Math.max(now.startMs, ...begun.map(({ periods }) => periods.get(id) ?? 0));
    const counted = begun.filter(({ periods }) => periods.get(id) === startMs);
    const sum = (state: Counted['state'], of: 'charge' | 'hold'): number =>
      counted.filter((one) => one.state === state).reduce((total, one) => total + one[of], 0);
    return { spent: sum('settled', 'charge'), held: sum('open', 'hold'), startMs };
  }
}

/** The name of a budget in the database, written anew: with that of the source, calendars that are mixed up would agree. */
function budgetIdOf(owner: string, { per, timeZone }: BudgetInput): string {
  return `${owner} ${per} ${timeZone}`;
}

function groupIdOf(name: string): string {
  return `group:${name}`;
}

function nanosOf({ amount }: BudgetInput): number {
  const nanos = parseUsd(amount);
  if (nanos === null) throw new Error(`${amount} is no amount`);
  return nanos;
}
