/** Joins what several workers say of one thing: `all` is what each says, at least one, and `own` what this one says. */
export type Join<Value> = (all: readonly Value[], own: Value) => Value;

/** The same of a field; what the others say of the whole is in the order of `all`. */
export type JoinField<Value, Whole> = (all: readonly Value[], own: Value, wholes: readonly Whole[]) => Value;

/** Joins objects by a table that says of each of their fields how it is joined. */
export function byFields<Whole extends object>(table: {
  readonly [Field in keyof Whole]-?: JoinField<Whole[Field], Whole>;
}): Join<Whole> {
  const names = Object.keys(table) as (keyof Whole)[];
  return (all, own) => {
    const values = names.map((name) =>
      table[name](
        all.map((each) => each[name]),
        own[name],
        all,
      ),
    );
    return Object.fromEntries(names.map((name, at) => [name, values[at]])) as Whole;
  };
}

/** Fields for the table in which each is what this worker says, such as what is configured. */
export function asOwn<Name extends string>(...names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, ownOf])) as Record<Name, typeof ownOf>;
}

function ownOf<Value>(_all: readonly Value[], own: Value): Value {
  return own;
}

/** Joins the entries of lists that are of the same thing, by its id; the things are those of this worker. */
export function byId<Entry>(idOf: (entry: Entry) => string, join: Join<Entry>): Join<readonly Entry[]> {
  return (all, own) => {
    const same = Map.groupBy(all.flat(), idOf);
    return own.map((entry) => {
      const found = same.get(idOf(entry));
      return found === undefined ? entry : join(found, entry);
    });
  };
}

/** Joins what is not `null`, if this worker has it. */
export function ifOwn<Value>(join: Join<Value>): Join<Value | null> {
  const joinKnown = ifKnown(join);
  return (all, own) => (own === null ? null : joinKnown(all, own));
}

/** Joins what is not `null`, if any worker has it. */
export function ifKnown<Value>(join: Join<Value>): Join<Value | null> {
  return (all, own) => {
    const known = all.filter((each) => each !== null);
    const [first] = known;
    return first === undefined ? own : join(known, own ?? first);
  };
}

export function sum(all: readonly number[]): number {
  return all.reduce((total, each) => total + each, 0);
}

/** The sum of limits; `null` if one worker has none: then they have none together. */
export function sumOfLimits(all: readonly (number | null)[]): number | null {
  const known = all.filter((each) => each !== null);
  return known.length < all.length ? null : sum(known);
}

/** Adds up counts by their names. */
export function sums<Counts extends object>(all: readonly Counts[]): Counts {
  const totals = new Map<string, number>();
  for (const counts of all)
    for (const [name, count] of Object.entries(counts))
      totals.set(name, (totals.get(name) ?? 0) + Number(count));
  return Object.fromEntries(totals) as Counts;
}

export function greatest(all: readonly number[]): number {
  return Math.max(...all);
}

/** The latest of some times; `null` without any. */
export const latest: Join<number | null> = ifKnown(greatest);

/** That whose figure is greatest, such as a harm or a time; the first of several. */
export function greatestBy<Value>(figureOf: (value: Value) => number): Join<Value> {
  return (all, own) =>
    all.reduce((found, each) => (figureOf(each) > figureOf(found) ? each : found), all[0] ?? own);
}

/** The first that is known, where only one worker looks; `null` without any. */
export function firstKnown<Value>(all: readonly (Value | null)[]): Value | null {
  return all.find((each) => each !== null) ?? null;
}
