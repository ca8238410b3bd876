import { away } from './claim-changes.ts';
import { copyOf } from './claim-state.ts';
import type { Process, Row, State } from './claim-state.ts';
import type { Course } from './log-course.ts';

/** A state of the model, and which run each call was made for: one that is behind all events of a log so far. */
export interface Way {
  readonly state: State;
  readonly runOf: ReadonlyMap<number, number>;
}

/** No failure is counted: a log says what failed. */
export const uncounted = 9;

/**
 * The same way without what nothing that follows can depend on, so that fewer states are visited: which runs there were, what is
 * said of them for faults alone, and the leases of processes that have nothing to do with the claim, whose best state is taken.
 */
export function makePlain({ state: found, runOf }: Way, course: Course): Way {
  const state = copyOf(found);
  const [claim] = state.claims;
  if (claim === undefined) return { state, runOf };
  if (claim.row?.stands === 'free') claim.row = null;
  if (claim.onDisk?.stands === 'free') claim.onDisk = null;
  if (!course.mayCrash && !course.crashesLater) claim.onDisk = claim.row;
  claim.lost.length = 0;
  Object.assign(claim, { charged: 0, wasComplete: false });
  const rows = [claim.row, claim.onDisk];
  for (const [at, process] of state.processes.entries())
    if (!hasPart(process, at, rows)) forgetLease(process, !course.isCutOff.has(at));
  forgetListeners(state, course);
  state.failures = uncounted;
  for (const failure of ['kill', 'stop', 'loss', 'upstream', 'crash'] as const)
    state.most[failure] = uncounted;
  return renumber(state, runOf);
}

function hasPart(
  { answers: [answer], kept: [kept] }: Process,
  at: number,
  rows: readonly (Row | null)[],
): boolean {
  return (answer ?? null) !== null || (kept ?? null) !== null || rows.some((row) => row?.process === at);
}

/** A process without a part in the claim renews its lease, and has the database, as soon as it can: nothing is lost by that. */
function forgetLease(process: Process, mayHaveDatabase: boolean): void {
  process.lease = 0;
  process.leaseIs = process.life === 'dead' ? 'ended' : 'held';
  if (process.life === 'alone' && mayHaveDatabase) process.life = 'up';
}

/**
 * What those have that have left, may not ask, and are not known to have got an answer, decides nothing. Of those that still
 * listen to a run, one that is gone late has it go on for as long as all of them.
 */
function forgetListeners({ clients }: State, course: Course): void {
  for (const [at, client] of clients.entries()) {
    const known = course.clients.get(at);
    if (known === undefined || !known.mayLeave || known.mayAsk || known.hasAnswer) continue;
    const isOutlasted = clients.some((other, place) => {
      const { mayLeave = false, goneAt = 0 } = course.clients.get(place) ?? {};
      return (
        mayLeave && goneAt > known.goneAt && other.is === 'listening' && other.process === client.process
      );
    });
    if (client.is !== 'listening' || isOutlasted) Object.assign(client, away);
  }
}

/** Numbers the runs that are still somewhere from 1 on, in their order. */
function renumber(state: State, runOf: Way['runOf']): Way {
  const [claim] = state.claims;
  const there = new Set<number>();
  for (const row of [claim?.row, claim?.onDisk]) if (row !== undefined && row !== null) there.add(row.run);
  for (const { answers, kept } of state.processes)
    for (const one of [answers[0], kept[0]]) if (one !== undefined && one !== null) there.add(one.run);
  there.delete(0);
  const runs = [...there].toSorted((a, b) => a - b);
  const numberOf = (run: number): number => (run > 0 ? runs.indexOf(run) + 1 : run);
  if (claim !== undefined) {
    for (const place of ['row', 'onDisk'] as const) {
      const row = claim[place];
      if (row !== null) claim[place] = { ...row, run: numberOf(row.run) };
    }
    claim.runs = runs.length;
  }
  for (const { answers, kept } of state.processes) {
    const [answer, settled] = [answers[0] ?? null, kept[0] ?? null];
    if (answer !== null) answers[0] = { ...answer, run: numberOf(answer.run) };
    if (settled !== null) kept[0] = { ...settled, run: numberOf(settled.run) };
  }
  for (const client of state.clients) client.run = client.is === 'listening' ? numberOf(client.run) : -1;
  const kept = [...runOf].filter(([, run]) => there.has(run));
  return { state, runOf: new Map(kept.map(([call, run]) => [call, numberOf(run)])) };
}
