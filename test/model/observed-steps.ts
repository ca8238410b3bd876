import type { LogEvent } from './claim-log.ts';
import type { State } from './claim-state.ts';
import type { Model } from './search.ts';

/** What was observed of the steps so far: a log, and who is who in it. */
export interface Observed {
  readonly log: readonly LogEvent[];
  /** The request that each client has under way, and the call that each process has made last. */
  readonly requests: ReadonlyMap<number, number>;
  readonly calls: ReadonlyMap<number, number>;
  readonly numbers: number;
}

/** All processes have started. */
export function nothingObserved({ processes }: State): Observed {
  const log = processes.map((_, process) => ({ what: 'starts' as const, process }));
  return { log, requests: new Map(), calls: new Map(), numbers: 0 };
}

const ofProcesses: Readonly<Record<string, readonly Extract<LogEvent, { process: number }>['what'][]>> = {
  'is killed': ['is killed'],
  'stands still': ['stands still'],
  'goes on': ['goes on'],
  'loses the database': ['loses the database'],
  'has the database again': ['has the database'],
  'has a lease that is over': ['may lose its lease'],
};

/** What is observed of a step of the model, behind what was observed before it. */
export function observeStep(before: State, name: string, after: State, known: Observed): Observed {
  const log = [...known.log];
  const [requests, calls] = [new Map(known.requests), new Map(known.calls)];
  let { numbers } = known;
  const [, process = '', change = ''] = /^process (\d+) (.*)$/.exec(name) ?? [];
  for (const what of ofProcesses[change] ?? []) log.push({ what, process: Number(process) } as LogEvent);
  if (name === 'the database crashes') log.push({ what: 'the database may crash' });
  const [, asking = '', asked = ''] = /^client (\d+) asks process (\d+)/.exec(name) ?? [];
  if (asking !== '') {
    requests.set(Number(asking), numbers);
    log.push({ what: 'asks', client: numbers++, process: Number(asked) });
  }
  for (const [at, { answers, life }] of after.processes.entries()) {
    const [was, is] = [before.processes[at]?.answers[0] ?? null, answers[0] ?? null];
    if (was?.stands !== 'running' && is?.stands === 'running') {
      calls.set(at, numbers);
      log.push({ what: 'is called', call: numbers++, process: at });
    }
    const call = calls.get(at);
    if (was?.stands === 'running' && is?.stands !== 'running' && call !== undefined)
      log.push({ what: is?.stands === 'complete' ? 'is answered' : 'is cut off', call });
    if (before.processes[at]?.life === 'up' && life === 'alone' && change !== 'loses the database')
      log.push({ what: 'loses the database', process: at });
  }
  for (const [at, { is }] of after.clients.entries()) {
    const client = requests.get(at);
    if (client === undefined || is === before.clients[at]?.is) continue;
    if (is === 'served' || is === 'told' || is === 'refused') log.push({ what: `is ${is}`, client });
    else if (is === 'away') log.push({ what: 'leaves', client }, { what: 'is gone', client });
  }
  if (name === 'the database crashes') log.push({ what: 'the database is back' });
  return { log, requests, calls, numbers };
}

/** The model without what an upstream does that never fails, as in a run whose logs are read. */
export function withoutFailures(model: Model<State>): Model<State> {
  return {
    ...model,
    *steps(state) {
      for (const step of model.steps(state)) {
        const [, at = ''] = /in process (\d+) fails, and costs nothing$/.exec(step.name) ?? [];
        const process = state.processes[Number(at)];
        const isStopped = process?.life === 'alone' || process?.leaseIs !== 'held';
        if (step.name.endsWith('breaks off, and is to be paid') || step.name.endsWith('is forgotten'))
          continue;
        if (at === '' || isStopped) yield step;
      }
    },
  };
}
