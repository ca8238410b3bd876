import { away, cut, noteLeft } from './claim-changes.ts';
import { works } from './claim-state.ts';
import type { Client, Row } from './claim-state.ts';
import type { Steps } from './claim-steps.ts';

/** A client, and what it asks a process for. */
interface Asking {
  readonly name: string;
  readonly client: number;
  readonly body: number;
  readonly at: number;
  readonly claim: number;
}

/** What a client may do: ask, again and again, and leave. */
export function stepsOfClient(steps: Steps, client: number): void {
  const { claims, clients, processes } = steps.state;
  const asking = clients[client];
  if (asking?.is === 'listening') leave(steps, client, asking);
  if (asking?.is !== 'away') return;
  for (const claim of asking.claim < 0 ? claims.keys() : [asking.claim])
    for (const [at, { life }] of processes.entries()) {
      const name = `client ${client} asks process ${at} for ${claim}`;
      const asked = { name, client, body: asking.body, at, claim };
      if (life === 'up') ask(steps, asked);
      else if (life === 'alone') askAlone(steps, asked);
    }
}

/** Without the database a process answers from its memory: for a moment it still takes the keys of clients for valid. */
function askAlone(steps: Steps, asking: Asking): void {
  const { name, client, body, at, claim } = asking;
  const own = steps.state.processes[at]?.answers[claim] ?? null;
  if (own === null || own.stands === 'asked') return;
  if (own.body !== body) refuse(steps, asking, own.body);
  else if (own.stands !== 'settled') listen(steps, asking, at, own.run);
  else
    steps.add(name, null, (next) => {
      Object.assign(next.clients[client] ?? {}, { claim, run: own.run, process: -1, is: 'served' });
    });
}

/** A client begins a run, joins one, has an answer replayed, or is told what became of it. */
function ask(steps: Steps, asking: Asking): void {
  const { at, claim, body } = asking;
  const { claims, processes } = steps.state;
  const own = processes[at]?.answers[claim] ?? null;
  const row = claims[claim]?.row ?? null;
  if (own !== null && own.stands !== 'settled') {
    if (own.body === body) listen(steps, asking, at, own.run);
    // As long as it is not known to have begun, who asks for something else waits.
    else if (own.stands !== 'asked') refuse(steps, asking, own.body);
  } else if (row === null || row.stands === 'free') begin(steps, asking);
  else if (row.body !== body && !steps.breaks('another request is answered with what is there'))
    refuse(steps, asking, row.body);
  else meet(steps, asking, row);
}

/** What becomes of a client that asks for what is there. Where the owner can't be asked, it is told to come back. */
function meet(steps: Steps, asking: Asking, row: Row): void {
  const { name, client, at, claim } = asking;
  const owner = steps.state.processes[row.process];
  if (owner === undefined) return;
  const answer = owner.answers[claim] ?? null;
  const isThere = works(owner) && answer !== null && answer.run === row.run;
  if (row.stands === 'ended') {
    if (steps.breaks('what has ended is answered to none')) return;
    const hasText = isThere && answer.stands === 'settled';
    const replays = hasText && !steps.breaks('what is there is not replayed');
    steps.add(name, null, (next) => {
      const run = hasText ? row.run : -1;
      Object.assign(next.clients[client] ?? {}, { claim, run, process: -1, is: replays ? 'served' : 'told' });
    });
    if (hasText && steps.breaks('what is settled is joined')) listen(steps, asking, row.process, row.run);
  } else if (isThere) {
    if (steps.breaks('a second client runs anew') && at !== row.process) begin(steps, asking);
    else listen(steps, asking, row.process, row.run);
  } else if (owner.life === 'stopped' && steps.breaks('a stopped owner is passed over')) begin(steps, asking);
}

/** A process is about to run what is asked for. The client listens, to what need not come. */
function begin(steps: Steps, { name, client, body, at, claim }: Asking): void {
  const runs = steps.state.claims[claim]?.runs ?? 0;
  if (runs >= steps.mostRuns) return;
  steps.add(`${name}: begins`, null, (next) => {
    const process = next.processes[at];
    if (process !== undefined) process.answers[claim] = { run: 0, body, stands: 'asked', inGrace: false };
    Object.assign(next.clients[client] ?? {}, { is: 'listening', claim, process: at, run: 0 });
  });
}

function listen(steps: Steps, { name, client, claim }: Asking, process: number, run: number): void {
  steps.add(`${name}: joins run ${run}`, null, (next) => {
    Object.assign(next.clients[client] ?? {}, { is: 'listening', claim, process, run });
    const answer = next.processes[process]?.answers[claim] ?? null;
    if (answer !== null && !steps.breaks('a join does not end the grace')) answer.inGrace = false;
  });
}

/** Another request has the key. */
function refuse(steps: Steps, { name, client, claim }: Asking, met: number): void {
  steps.add(`${name}: is refused`, null, (next) => {
    Object.assign(next.clients[client] ?? {}, { is: 'refused', claim, process: -1, run: met });
  });
}

/** The connection of a client breaks, also that of a process between it and the owner. */
function leave(steps: Steps, client: number, { claim, process }: Client): void {
  steps.add(`client ${client} leaves`, 'given up', (next) => {
    Object.assign(next.clients[client] ?? {}, away);
    const there = next.processes[process];
    const answer = there?.answers[claim];
    if (there === undefined || !works(there) || answer?.stands !== 'running') return;
    if (steps.breaks('the first client that leaves stops the run')) cut(next, process, claim, answer);
    else if (!steps.breaks('a run without clients goes on')) noteLeft(next, process, claim, answer);
  });
}
