import { away } from './claim-changes.ts';
import type { LogEvent } from './claim-log.ts';
import { copyOf, startOf } from './claim-state.ts';
import type { Client, Process, State } from './claim-state.ts';
import { stepsFrom } from './claim-steps.ts';
import { followLog, numberLog } from './log-course.ts';
import type { Course } from './log-course.ts';
import { makePlain, uncounted } from './plain-state.ts';
import type { Way } from './plain-state.ts';

/** How many runs there may be at a time of which something is left: more than a search needs. */
const mostRuns = 9;

/** How far the model goes along with a log. */
export interface Reading {
  /** How many of its events are accepted, from the first one on. */
  readonly accepted: number;
  /** The event that the model does not allow behind those; `null` where it allows all. */
  readonly refused: LogEvent | null;
  /** How many states were visited. */
  readonly states: number;
}

/**
 * Reads a log of what was observed of a claim: searches for a way of the model whose observable steps are the events of the log,
 * each in its place, with any hidden steps between them. Returns `null` where more than `most` states are behind one event: then
 * nothing is known.
 */
export function readLog(log: readonly LogEvent[], most = 50_000): Reading | null {
  const { events, clients, processes } = numberLog(log);
  const fates = new Map(
    events.flatMap((event) =>
      event.what === 'is answered' || event.what === 'is cut off' ? [[event.call, event.what] as const] : [],
    ),
  );
  let states = 0;
  let ways: readonly Way[] = [{ state: firstState(clients, processes), runOf: new Map() }];
  for (const [accepted, { event, course }] of followLog(events, fates).entries()) {
    const reached = reachHidden(ways, course, most);
    if (reached === null) return null;
    states += reached.length;
    ways = reached.flatMap((way) => take(way, event, course) ?? []);
    if (ways.length === 0) return { accepted, refused: log[accepted] ?? null, states };
  }
  return { accepted: log.length, refused: null, states };
}

/** No process has started, and no client has asked. */
function firstState(clients: number, processes: number): State {
  const most = { kill: uncounted, stop: uncounted, loss: uncounted, upstream: uncounted, crash: uncounted };
  const state = startOf({ claims: 1, clients, processes, others: 0, failures: uncounted, most });
  for (const process of state.processes) Object.assign(process, { life: 'dead', leaseIs: 'ended' });
  return state;
}

/** All that hidden steps lead to before the next event, with where they start. */
function reachHidden(ways: readonly Way[], course: Course, most: number): readonly Way[] | null {
  const seen = new Map<string, Way>();
  const reach = (way: Way): void => {
    const plain = makePlain(way, course);
    const name = JSON.stringify([plain.state, [...plain.runOf]]);
    if (!seen.has(name)) seen.set(name, plain);
  };
  for (const way of ways) reach(way);
  // What is added to a map while it is visited is visited, too.
  for (const { state, runOf } of seen.values()) {
    for (const { next } of stepsFrom(state, null, mostRuns, (name) =>
      isHidden(name, { state, runOf }, course),
    ))
      reach({ state: next, runOf });
    for (const next of tellUnreached(state, course)) reach({ state: next, runOf });
    if (seen.size > most) return null;
  }
  return [...seen.values()];
}

/** Whether a step of the model is hidden, and may be made here. */
function isHidden(name: string, { state, runOf }: Way, course: Course): boolean {
  if (name === 'the database crashes') return course.mayCrash;
  const [, client = '', asked] = /^client (\d+) (?:asks process (\d+)|leaves)/.exec(name) ?? [];
  if (client !== '') {
    const known = course.clients.get(Number(client));
    return asked === undefined
      ? known?.mayLeave === true
      : known?.mayAsk === true && known.process === Number(asked);
  }
  const [, run = '', process = '', runStep = ''] = /^run (\d+) of 0 in process (\d+) (.*)$/.exec(name) ?? [];
  if (run !== '') return isHiddenOfRun(Number(run), Number(process), runStep, { state, runOf }, course);
  const [, changed = '', change = ''] = /^process (\d+) (.*)$/.exec(name) ?? [];
  if (change === 'has a lease that is over') return course.mayLoseLease.has(Number(changed));
  if (change === 'has the database again') return !course.isCutOff.has(Number(changed));
  // The others are observed.
  return !['is killed', 'stands still', 'goes on', 'loses the database'].includes(change);
}

function isHiddenOfRun(
  run: number,
  at: number,
  step: string,
  { state, runOf }: Way,
  { answered, unread, fates, losesDatabaseLater }: Course,
): boolean {
  const call = [...runOf].find(([, ofCall]) => ofCall === run)?.[0];
  const process = state.processes[at];
  // Behind a pause a run may be stopped before all is read that its upstream has sent meanwhile.
  const isAnswered = call !== undefined && fates.get(call) === 'is answered' && !unread.has(call);
  switch (step) {
    case 'comes to its end':
      return call !== undefined && answered.has(call);
    case 'is stopped at the end of its grace':
    case 'is stopped so before any text':
      return !isAnswered;
    case 'fails, and costs nothing':
      // The upstream does not fail. A process stops what it runs before its lease is over.
      return !isAnswered && process !== undefined && (process.life === 'alone' || process.leaseIs !== 'held');
    case 'breaks off, and is to be paid':
    // It is kept for longer than a log lasts.
    case 'is forgotten':
      return false;
    case 'is settled, and its process does not hear of it':
      return losesDatabaseLater.has(at);
    default:
      return true;
  }
}

/** A client is told what was charged although the text is there, where the process that has it can't be reached. */
function* tellUnreached(state: State, course: Course): Generator<State> {
  const row = state.claims[0]?.row ?? null;
  const owner = state.processes[row?.process ?? -1];
  if (row?.stands !== 'ended' || owner === undefined) return;
  // One whose lease was ended goes on under another name than the claim has.
  const isUnreached = course.areApart || owner.lease > 0 || owner.leaseIs === 'ended';
  for (const [client, { process, mayAsk }] of course.clients) {
    const asked = state.processes[process];
    if (!isUnreached || !mayAsk || process === row.process || asked?.life !== 'up') continue;
    if (state.clients[client]?.is !== 'away') continue;
    const next = copyOf(state);
    Object.assign(next.clients[client] ?? {}, { claim: 0, process: -1, run: -1, is: 'told' });
    yield next;
  }
}

/** Behind an event; `null` where the model does not allow it. */
function take(way: Way, event: LogEvent, course: Course): Way | null {
  const { state, runOf } = way;
  switch (event.what) {
    case 'asks':
      return { ...way, state: changeClient(state, event.client, { ...away, claim: 0 }) };
    case 'is gone':
      if (state.clients[event.client]?.is === 'listening') return null;
      return { ...way, state: changeClient(state, event.client, { ...away, claim: -1 }) };
    case 'is served':
    case 'is told':
    case 'is refused':
      return `is ${state.clients[event.client]?.is}` === event.what ? way : null;
    case 'is called': {
      const answer = state.processes[event.process]?.answers[0] ?? null;
      const isFirst = answer !== null && ![...runOf.values()].includes(answer.run);
      if (answer?.stands !== 'running' || !isFirst) return null;
      if (state.processes[event.process]?.life === 'stopped') return null;
      return { ...way, runOf: new Map([...runOf, [event.call, answer.run]]) };
    }
    case 'is cut off': {
      const process = state.processes[course.processOf.get(event.call) ?? -1];
      const answer = process?.answers[0] ?? null;
      const isRunning = answer?.stands === 'running' && answer.run === runOf.get(event.call);
      return isRunning || process?.life === 'stopped' ? null : way;
    }
    case 'starts':
      return { ...way, state: changeProcess(state, event.process, { life: 'up', leaseIs: 'held' }) };
    case 'is killed':
    case 'stands still':
    case 'goes on':
      return observe(way, `process ${event.process} ${event.what}`);
    case 'loses the database':
      return state.processes[event.process]?.life === 'up'
        ? observe(way, `process ${event.process} ${event.what}`)
        : way;
    case 'is charged':
      return state.claims[0]?.charges === event.times ? way : null;
    case 'leaves':
    case 'is answered':
    case 'has the database':
    case 'may lose its lease':
    case 'nodes are apart':
    case 'nodes are together':
    case 'the database may crash':
    case 'the database is back':
      // What that allows is in the course of the log.
      return way;
  }
}

/** Behind an observed step of the model. */
function observe(way: Way, name: string): Way | null {
  const [step] = stepsFrom(way.state, null, 0, (found) => found === name);
  return step === undefined ? null : { ...way, state: step.next };
}

function changeClient(state: State, at: number, change: Partial<Client>): State {
  const next = copyOf(state);
  Object.assign(next.clients[at] ?? {}, change);
  return next;
}

function changeProcess(state: State, at: number, change: Partial<Process>): State {
  const next = copyOf(state);
  Object.assign(next.processes[at] ?? {}, change);
  return next;
}
