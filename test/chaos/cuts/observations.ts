import { writeFileSync } from 'node:fs';

/** What is observed of a question, or of the processes and the database for all questions. Times are of the monotonic clock. */
export type Seen =
  | { readonly what: 'sent'; readonly asked: number; readonly process: number; readonly asker: number }
  | { readonly what: 'left'; readonly asked: number }
  | { readonly what: 'served' | 'told' | 'refused'; readonly asked: number }
  | { readonly what: 'called'; readonly call: number; readonly process: number }
  | { readonly what: 'answered' | 'cut off'; readonly call: number; readonly process: number }
  | { readonly what: ProcessChange; readonly process: number }
  | { readonly what: 'nodes apart' | 'nodes together' | 'database killed' | 'database back' };

type ProcessChange = 'started' | 'killed' | 'stopped' | 'goes on' | 'loses database' | 'has database';

/** With its place in the order of all, and its time in milliseconds. */
export type Observed = Seen & { readonly at: number; readonly atMs: number };

/** What was observed last of a question, as a step of its claim. */
export const claimSteps = ['begins', 'running', 'grace', 'settling', 'ended'] as const;
export type ClaimStep = (typeof claimSteps)[number];

/** How long a question counts as ended after its first answer, in milliseconds: its answer is kept, and others ask for it. */
const endedForMs = 1_000;

/** Two requests of one client within so many milliseconds are one that its library has sent again: either may be answered. */
export const togetherMs = 50;

/** One request for a question that is under way. */
interface Asked {
  readonly sentMs: number;
  readonly asker: number;
  readonly process: number;
  hasLeft: boolean;
}

/** A question that is asked, or was answered a moment ago. */
interface Open {
  readonly asked: Map<number, Asked>;
  /** The call of its upstream that began last. */
  call: {
    readonly number: number;
    readonly process: number;
    state: 'running' | 'answered' | 'cut off';
  } | null;
  isAnswered: boolean;
  askers: number;
}

/** Notes what is observed in a run, in one order: the clients, the proxies and the upstream of a run are one process. */
export class Observations {
  /** What concerns all questions. */
  readonly ofAll: Observed[] = [];
  readonly ofQuestions = new Map<number, Observed[]>();
  readonly #open = new Map<number, Open>();
  /** What is held back of processes that are being killed or stopped. */
  readonly #ending = new Map<number, { readonly what: Seen['what']; readonly held: (() => void)[] }>();
  readonly #watches = new Set<(question: number) => void>();
  #last = 0;
  #lastNumber = 0;

  /** A number that nothing else has: of a request, a call or a process. */
  nextNumber(): number {
    return ++this.#lastNumber;
  }

  noteForAll(seen: Seen): void {
    this.ofAll.push(this.#stamp(seen));
  }

  /** A question is going to be asked by some clients at a time. */
  begin(question: number, askers: number): void {
    this.ofQuestions.set(question, []);
    this.#open.set(question, { asked: new Map(), call: null, isAnswered: false, askers });
  }

  note(question: number, seen: Seen): void {
    const ending = 'process' in seen ? this.#ending.get(seen.process) : undefined;
    if (ending?.what === seen.what) return void ending.held.push(() => this.note(question, seen));
    this.ofQuestions.get(question)?.push(this.#stamp(seen));
    const open = this.#open.get(question);
    if (open !== undefined) this.#follow(open, seen);
    for (const watch of this.#watches) watch(question);
  }

  /** A client of a question asks no more. */
  end(question: number): void {
    const open = this.#open.get(question);
    if (open !== undefined && --open.askers === 0)
      setTimeout(() => this.#open.delete(question), endedForMs).unref();
  }

  /** Which request of an asker was sent last, of two at once the one that has not left; `undefined` where none was. */
  lastOf(question: number, asker: number): number | undefined {
    const asked = [...(this.#open.get(question)?.asked ?? [])].filter(([, one]) => one.asker === asker);
    return (asked.findLast(([, { hasLeft }]) => !hasLeft) ?? asked.at(-1))?.[0];
  }

  /**
   * A process is being killed, or stopped; the result is called once its sockets have been read to their ends, and notes that.
   * What it has not read any more, and what only follows from its death, is noted behind it, though it was seen before.
   */
  beginEnd(process: number, what: 'killed' | 'stopped'): () => void {
    const held: (() => void)[] = [];
    this.#ending.set(process, { what: what === 'killed' ? 'cut off' : 'answered', held });
    return () => {
      this.noteForAll({ what, process });
      this.#ending.delete(process);
      for (const note of held) note();
    };
  }

  /** How many of the open questions that concern a process, or of all, were seen last in each step. */
  countSteps(process: number | null): Map<ClaimStep, number> {
    const counts = new Map<ClaimStep, number>();
    for (const open of this.#open.values()) {
      if (!concerns(open, process)) continue;
      const step = stepOf(open);
      counts.set(step, (counts.get(step) ?? 0) + 1);
    }
    return counts;
  }

  /** Resolves when a question that concerns a process, or any, comes to a step, or after so many milliseconds. */
  async comesTo(step: ClaimStep, process: number | null, mostMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const watch = (question: number): void => {
      const open = this.#open.get(question);
      if (open !== undefined && concerns(open, process) && stepOf(open) === step) resolve();
    };
    this.#watches.add(watch);
    const timer = setTimeout(resolve, mostMs);
    await promise;
    clearTimeout(timer);
    this.#watches.delete(watch);
  }

  /** Writes all of it to a file. */
  write(file: string): void {
    writeFileSync(file, JSON.stringify({ ofAll: this.ofAll, ofQuestions: [...this.ofQuestions] }));
  }

  #stamp(seen: Seen): Observed {
    return { ...seen, at: ++this.#last, atMs: performance.now() };
  }

  #follow(open: Open, seen: Seen): void {
    const { call } = open;
    if (seen.what === 'sent') {
      const { asked, asker, process } = seen;
      const sentMs = performance.now();
      for (const [before, one] of open.asked)
        if (one.asker === asker && sentMs - one.sentMs > togetherMs) open.asked.delete(before);
      open.asked.set(asked, { sentMs, asker, process, hasLeft: false });
    } else if (seen.what === 'left') {
      const left = open.asked.get(seen.asked);
      if (left !== undefined) left.hasLeft = true;
    } else if (seen.what === 'called')
      open.call = { number: seen.call, process: seen.process, state: 'running' };
    else if (seen.what === 'answered' || seen.what === 'cut off') {
      if (call?.number === seen.call) call.state = seen.what;
    } else if (seen.what === 'served' || seen.what === 'told') open.isAnswered = true;
  }
}

function concerns({ call, asked }: Open, process: number | null): boolean {
  if (process === null || (call !== null && call.state !== 'cut off'))
    return process === null || call?.process === process;
  return [...asked.values()].some((one) => one.process === process);
}

function stepOf({ call, asked, isAnswered }: Open): ClaimStep {
  if (isAnswered) return 'ended';
  if (call === null || call.state === 'cut off') return 'begins';
  if (call.state === 'answered') return 'settling';
  return [...asked.values()].some(({ hasLeft }) => !hasLeft) ? 'running' : 'grace';
}
