/** Something that may happen: its name, and what follows. */
export interface Step<State> {
  readonly name: string;
  readonly next: State;
  /** Whether nothing may rely on it, as on failures, and on clients that give up. */
  readonly isOptional: boolean;
}

/** A system as its states, what may happen next in each of them, and what must never be true. */
export interface Model<State> {
  readonly start: State;
  steps(state: State): Iterable<Step<State>>;
  /** What is wrong with a state; `null` where nothing is. */
  faultOf(state: State): string | null;
  /**
   * What a state still waits for; `null` where it waits for nothing. From every state there must be a way to such a one by steps
   * that are not optional.
   */
  waitsFor(state: State): string | null;
  /** A text that is the same for states between which nothing can tell. */
  nameOf(state: State): string;
}

/** What a search found. */
export interface Found {
  /** How many states were reached that nothing can tell from each other. */
  readonly states: number;
  /** How many steps lead to the farthest one. */
  readonly depth: number;
  /** The shortest way to a state with a fault, or from which it never comes to an end; `null` where there is none. */
  readonly fault: { readonly text: string; readonly steps: readonly string[] } | null;
}

/** A state that was reached, and how. */
interface Reached {
  readonly before: Reached | null;
  readonly step: string;
  readonly depth: number;
  /** What it waits for. */
  readonly waitsFor: string | null;
  /** The states from which it follows by a step that is not optional. */
  readonly from: Reached[];
}

/**
 * Visits every state that can be reached, nearest first, so that the first fault has the shortest way to it. Throws if there are
 * more than `most` states: then nothing is proven.
 */
export function search<State>(model: Model<State>, most: number): Found {
  const seen = new Map<string, Reached>();
  const reach = (state: State, before: Reached | null, step: string): Reached => {
    const depth = before === null ? 0 : before.depth + 1;
    const reached = { before, step, depth, waitsFor: model.waitsFor(state), from: [] };
    seen.set(model.nameOf(state), reached);
    if (seen.size > most) throw new Error(`there are more than ${most} states`);
    return reached;
  };
  let edge: (readonly [State, Reached])[] = [[model.start, reach(model.start, null, '')]];
  let depth = 0;
  while (edge.length > 0) {
    const next: (readonly [State, Reached])[] = [];
    for (const [state, reached] of edge) {
      ({ depth } = reached);
      const text = model.faultOf(state);
      if (text !== null) return { states: seen.size, depth, fault: { text, steps: stepsTo(reached) } };
      for (const { name, next: after, isOptional } of model.steps(state)) {
        let following = seen.get(model.nameOf(after));
        if (following === undefined) {
          following = reach(after, reached, name);
          next.push([after, following]);
        }
        if (!isOptional) following.from.push(reached);
      }
    }
    edge = next;
  }
  const endless = firstEndless([...seen.values()]);
  const fault = endless === null ? null : { text: `${endless.waitsFor}, for ever`, steps: stepsTo(endless) };
  return { states: seen.size, depth, fault };
}

/** The nearest state that never comes to where it waits for nothing; `null` where all do. */
function firstEndless(all: readonly Reached[]): Reached | null {
  const ending = new Set(all.filter(({ waitsFor }) => waitsFor === null));
  for (const reached of ending) for (const before of reached.from) ending.add(before);
  return all.find((reached) => !ending.has(reached)) ?? null;
}

function stepsTo(reached: Reached): readonly string[] {
  const steps: string[] = [];
  for (let at: Reached = reached; at.before !== null; at = at.before) steps.unshift(at.step);
  return steps;
}
