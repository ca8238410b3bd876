import { cut, flush, isOwn, lose, noteLeft, sendAway, serve } from './claim-changes.ts';
import type { BrokenRule } from './claim-rules.ts';
import type { Answer, Claim, Kept, Process, State } from './claim-state.ts';
import type { Steps } from './claim-steps.ts';

/** The answer of a claim in a process, with both in the state that follows. */
interface Changing {
  readonly next: State;
  readonly at: number;
  readonly claim: number;
  readonly process: Process;
  readonly answer: Answer;
  readonly claimed: Claim;
}

/** What may become of an answer that a process has. Without the database it neither begins nor is settled: its clients wait. */
export function stepsOfAnswer(steps: Steps, at: number, claim: number, { answers, life }: Process): void {
  const known = answers[claim] ?? null;
  if (known === null) return;
  const change = (
    step: string,
    failure: 'upstream' | 'loss' | null,
    work: (changing: Changing) => void,
  ): void =>
    steps.add(`run ${known.run} of ${claim} in process ${at} ${step}`, failure, (next) => {
      const process = next.processes[at];
      const answer = process?.answers[claim] ?? null;
      const claimed = next.claims[claim];
      if (process !== undefined && answer !== null && claimed !== undefined)
        work({ next, at, claim, process, answer, claimed });
    });
  switch (known.stands) {
    case 'asked':
      if (life !== 'up') return;
      if (known.run === 0) change('is written', null, (changing) => write(steps, changing));
      else {
        change('learns that it has its claim', null, ({ next, answer }) => run(next, at, claim, answer));
        change('asks for its claim again', null, (changing) => writeAgain(steps, changing));
      }
      return;
    case 'running':
      if (known.inGrace) {
        change('is stopped at the end of its grace', null, ({ next, answer }) =>
          cut(next, at, claim, answer),
        );
        change('is stopped so before any text', 'upstream', (changing) => fail(steps, changing));
      }
      change('comes to its end', null, ({ next, answer }) => {
        answer.stands = 'complete';
        answer.inGrace = false;
        if (steps.breaks('the end goes out before the charge')) serve(next, at, claim, answer.run);
      });
      change('fails, and costs nothing', 'upstream', (changing) => fail(steps, changing));
      change('breaks off, and is to be paid', 'upstream', ({ answer }) => {
        answer.stands = 'cut';
        answer.inGrace = false;
      });
      return;
    case 'complete':
    case 'cut':
      if (life !== 'up') return;
      change('is settled', null, (changing) => settle(steps, changing));
      change('is settled, and its process does not hear of it', 'loss', ({ process, answer, ...rest }) => {
        charge(steps, rest, at, keptOf(answer), answer.body);
        process.life = 'alone';
      });
      return;
    case 'settled':
      change('is forgotten', null, ({ process }) => (process.answers[claim] = null));
  }
}

/** Its claim is written, under a lease, unless another run has it by now: then its clients have to ask again. */
function write(steps: Steps, { next, at, claim, process, answer, claimed }: Changing): void {
  const { row } = claimed;
  const isFree = row === null || row.stands === 'free' || steps.breaks('a second client runs anew');
  const mayBegin = process.leaseIs === 'held' || steps.breaks('a process begins without a lease');
  const passesOver =
    steps.breaks('a stopped owner is passed over') && next.processes[row?.process ?? -1]?.life === 'stopped';
  if (!mayBegin || !(isFree || passesOver)) {
    process.answers[claim] = null;
    return sendAway(next, at, claim);
  }
  claimed.runs++;
  answer.run = claimed.runs;
  for (const client of next.clients)
    if (client.is === 'listening' && client.process === at && client.claim === claim) client.run = answer.run;
  claimed.row = { stands: 'running', process: at, lease: process.lease, run: answer.run, body: answer.body };
  if (!steps.breaks('a claim is not on the disk before the call')) flush(next);
}

/** What was written is not written again; where its claim was freed meanwhile, it has none. */
function writeAgain(steps: Steps, { next, at, claim, process, answer, claimed }: Changing): void {
  const takesItsOwnForAnother = steps.breaks('a begin that was made is taken for another one');
  if (isOwn(claimed.row, answer) && !takesItsOwnForAnother) return run(next, at, claim, answer);
  process.answers[claim] = null;
  sendAway(next, at, claim);
}

/** Its process knows that it has the claim, and calls the upstream. */
function run(next: State, at: number, claim: number, answer: Answer): void {
  answer.stands = 'running';
  noteLeft(next, at, claim, answer);
}

/** Nothing is charged, and the claim is free. That need not be on the disk: an owner frees what it does not have. */
function fail(steps: Steps, { next, at, claim, process, answer, claimed }: Changing): void {
  const { row } = claimed;
  if (isOwn(row, answer)) lose(claimed, answer.run);
  if (process.life === 'up' && isOwn(row, answer))
    claimed.row = {
      ...row,
      stands: steps.breaks('a failed run keeps its claim as ended') ? 'ended' : 'free',
    };
  process.answers[claim] = null;
  sendAway(next, at, claim);
}

/** Gives clients their end once their run is charged; one that has lost its claim is cut off, and nothing is charged. */
function settle(steps: Steps, { next, at, claim, process, answer, claimed }: Changing): void {
  if (!charge(steps, { next, claimed }, at, keptOf(answer), answer.body)) {
    process.answers[claim] = null;
    return sendAway(next, at, claim);
  }
  if (answer.stands === 'complete' || steps.breaks('what was cut is replayed')) {
    answer.stands = 'settled';
    return serve(next, at, claim, answer.run);
  }
  process.answers[claim] = null;
  for (const client of next.clients)
    if (client.is === 'listening' && client.process === at && client.claim === claim)
      Object.assign(client, { is: 'told', process: -1, run: -1 });
}

function keptOf({ run: number, stands }: Answer): Kept {
  return { run: number, isComplete: stands === 'complete' };
}

/** Charges a run that has its claim, once. Returns whether it is charged, now or before. */
function charge(
  steps: Steps,
  { next, claimed }: Pick<Changing, 'next' | 'claimed'>,
  at: number,
  settled: Kept,
  body: number,
  blindRule: BrokenRule = 'a settlement does not look at the claim',
): boolean {
  const { row } = claimed;
  const wasMade = row?.stands === 'ended' && row.process === at && row.run === settled.run;
  if (wasMade && !steps.breaks('a settlement in doubt charges again')) return true;
  if (!wasMade && !isOwn(row, settled) && !steps.breaks(blindRule)) return false;
  claimed.charges++;
  claimed.charged = settled.run;
  claimed.wasComplete = settled.isComplete;
  claimed.row = { stands: 'ended', process: at, lease: -1, run: settled.run, body };
  flush(next);
  return true;
}

/** What becomes of the answers of a process that is killed: the settlements that wait for the database are on its disk. */
export function loseAnswers({ claims }: State, process: Process): void {
  for (const [at, claim] of claims.entries()) {
    const answer = process.answers[at] ?? null;
    if (process.life === 'alone' && (answer?.stands === 'complete' || answer?.stands === 'cut'))
      process.kept[at] = keptOf(answer);
    else if (answer !== null && isOwn(claim.row, answer)) lose(claim, answer.run);
  }
  process.answers.fill(null);
}

/** What was kept is settled by another process; its text is gone. It does not overtake a run that was taken for lost. */
export function stepsOfKept(steps: Steps, at: number, claim: number, { kept }: Process): void {
  const settled = kept[claim] ?? null;
  if (settled === null || steps.state.processes.every(({ life }) => life !== 'up')) return;
  steps.add(`what process ${at} has kept of run ${settled.run} of ${claim} is settled`, null, (next) => {
    const process = next.processes[at];
    const claimed = next.claims[claim];
    if (process === undefined || claimed === undefined) return;
    process.kept[claim] = null;
    const body = claimed.row?.body ?? 0;
    charge(steps, { next, claimed }, at, settled, body, 'a kept settlement does not look at the claim');
  });
}
