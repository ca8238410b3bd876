import { loseAnswers } from './answer-steps.ts';
import { flush, lose, noteLeft, sendAway } from './claim-changes.ts';
import type { Process, State } from './claim-state.ts';
import type { Steps } from './claim-steps.ts';

/** What a process does for all, and what may become of it and of its lease. */
export function stepsOfProcess(steps: Steps, at: number, process: Process): void {
  if (process.life === 'up') {
    sweep(steps, at, process);
    search(steps, at, process);
  }
  const { life, leaseIs } = process;
  const change = (
    step: string,
    failure: 'kill' | 'stop' | 'loss' | null,
    work: (next: State, changed: Process) => void,
  ): void =>
    steps.add(`process ${at} ${step}`, failure, (next) => {
      const changed = next.processes[at];
      if (changed !== undefined) work(next, changed);
    });
  if (life !== 'dead')
    change('is killed', 'kill', (next, killed) => {
      loseAnswers(next, killed);
      killed.life = 'dead';
      for (const claim of next.claims.keys()) sendAway(next, at, claim);
    });
  if (life === 'up') {
    change('stands still', 'stop', (_next, changed) => (changed.life = 'stopped'));
    change('loses the database', 'loss', (_next, changed) => (changed.life = 'alone'));
    if (leaseIs !== 'held')
      change('renews its lease', null, (next, changed) => renew(steps, next, at, changed));
    return;
  }
  if (leaseIs === 'held')
    change('has a lease that is over', null, (_next, changed) => (changed.leaseIs = 'over'));
  if (life === 'alone') change('has the database again', null, (_next, changed) => (changed.life = 'up'));
  if (life === 'stopped')
    change('goes on', null, (next, changed) => {
      changed.life = 'up';
      for (const [claim, answer] of changed.answers.entries())
        if (answer?.stands === 'running') noteLeft(next, at, claim, answer);
    });
}

/** Ends a lease that is over, and frees what was claimed under it. */
function sweep(steps: Steps, at: number, { leaseIs: ownLease }: Process): void {
  if (ownLease !== 'held') return;
  for (const [other, { leaseIs, lease, life }] of steps.state.processes.entries()) {
    const isEarly =
      steps.breaks('a lease is ended before it is over') && life === 'stopped' && leaseIs === 'held';
    if (other === at || (leaseIs !== 'over' && !isEarly)) continue;
    steps.add(`process ${at} frees what ${other} has claimed`, null, (next) => {
      const swept = next.processes[other];
      if (swept !== undefined && !isEarly) swept.leaseIs = 'ended';
      for (const claim of next.claims) {
        const { row } = claim;
        if (row?.stands !== 'running' || row.process !== other || row.lease !== lease) continue;
        lose(claim, row.run);
        claim.row = { ...row, stands: 'free' };
      }
      flush(next);
    });
  }
}

/** Frees what this process has claimed and neither runs nor is about to, as after a failure that the database has forgotten. */
function search(steps: Steps, at: number, process: Process): void {
  if (steps.breaks('an owner does not free what it does not have')) return;
  for (const [claim, { row }] of steps.state.claims.entries()) {
    const isOurs = row?.stands === 'running' && row.process === at && row.lease === process.lease;
    const known = process.answers[claim] ?? null;
    const isKnown =
      known?.run === row?.run &&
      !(known?.stands === 'asked' && steps.breaks('an owner frees what it is about to run'));
    if (!isOurs || isKnown) continue;
    steps.add(`process ${at} frees ${claim}, which it does not run`, null, (next) => {
      const freed = next.claims[claim];
      if (freed !== undefined) freed.row = { ...row, stands: 'free' };
    });
  }
}

/** One that was not ended has lost nothing. Else there is a new one, and what runs under the old one is stopped. */
function renew(steps: Steps, next: State, at: number, process: Process): void {
  if (process.leaseIs === 'ended') {
    process.lease++;
    if (!steps.breaks('an owner goes on when its lease was ended'))
      for (const [claim, answer] of process.answers.entries()) {
        if (answer === null || answer.stands === 'settled') continue;
        process.answers[claim] = null;
        sendAway(next, at, claim);
      }
  }
  process.leaseIs = 'held';
}
