import { away, cut, flush, isOwn, sendAway, serve } from './claim-changes.ts';
import type { BrokenRule } from './claim-rules.ts';
import { copyOf, listenersOf, works } from './claim-state.ts';
import type { Answer, Process, Row, State } from './claim-state.ts';
import type { Step } from './search.ts';

/** All that may happen next in a state. */
export class Steps {
  readonly #state: State;
  readonly #broken: BrokenRule | null;
  /** How often a claim may run: no rule bounds it in a model with a broken one. */
  readonly #mostRuns: number;
  readonly #found: Step<State>[] = [];

  constructor(state: State, broken: BrokenRule | null, mostRuns: number) {
    this.#state = state;
    this.#broken = broken;
    this.#mostRuns = mostRuns;
  }

  all(): readonly Step<State>[] {
    const { clients, processes, claims, left } = this.#state;
    for (const [client, { is }] of clients.entries()) {
      if (is === 'away') this.#ask(client);
      if (is === 'listening') this.#leave(client);
    }
    for (const [at, process] of processes.entries()) {
      if (works(process)) for (const claim of claims.keys()) this.#ofAnswer(at, claim, process);
      if (process.life === 'up') this.#sweep(at, process);
      if (process.life === 'up') this.#search(at, process);
      this.#ofLife(at, process);
    }
    if (left.databaseCrashes > 0)
      this.#add('the database crashes', 'databaseCrashes', (next) => {
        for (const claim of next.claims) claim.row = claim.onDisk;
      });
    return this.#found;
  }

  #breaks(rule: BrokenRule): boolean {
    return this.#broken === rule;
  }

  #add(
    name: string,
    failure: keyof State['left'] | null,
    change: (next: State) => void,
    gaveUp = false,
  ): void {
    const next = copyOf(this.#state);
    if (failure !== null) next.left[failure]--;
    change(next);
    this.#found.push({ name, next, isOptional: failure !== null || gaveUp });
  }

  /** A client asks a process: it begins a run, joins one, has an answer replayed, or is told what became of it. */
  #ask(client: number): void {
    const asked = this.#state.clients[client];
    const claims = asked === undefined || asked.claim < 0 ? [...this.#state.claims.keys()] : [asked.claim];
    for (const claim of claims)
      for (const [at, process] of this.#state.processes.entries()) {
        if (process.life !== 'up') continue;
        const row = this.#state.claims[claim]?.row ?? null;
        const name = `client ${client} asks process ${at} for ${claim}`;
        if (row === null || row.stands === 'free') this.#begin(name, client, at, claim);
        else this.#meet(name, client, at, claim, row);
      }
  }

  /** What becomes of a client that asks for what is there. Where the owner can't be asked, it is told to come back. */
  #meet(name: string, client: number, at: number, claim: number, row: Row): void {
    const owner = this.#state.processes[row.process];
    if (owner === undefined) return;
    const answer = owner.answers[claim] ?? null;
    const isThere = works(owner) && answer !== null && answer.run === row.run;
    if (row.stands === 'ended') {
      if (this.#breaks('what has ended is answered to none')) return;
      const replays = isThere && answer.stands === 'settled';
      this.#add(name, null, (next) => {
        const run = replays ? row.run : -1;
        Object.assign(next.clients[client] ?? {}, {
          claim,
          run,
          process: -1,
          is: replays ? 'served' : 'told',
        });
      });
      if (replays && this.#breaks('what is settled is joined'))
        this.#listen(name, client, claim, row.process, row.run);
    } else if (isThere) {
      if (this.#breaks('a second client runs anew') && at !== row.process)
        this.#begin(name, client, at, claim);
      else this.#listen(name, client, claim, row.process, row.run);
    } else if (owner.life === 'stopped' && this.#breaks('a stopped owner is passed over'))
      this.#begin(name, client, at, claim);
  }

  /** A process writes that it runs what is claimed, under its lease, and calls the upstream. */
  #begin(name: string, client: number, at: number, claim: number): void {
    const process = this.#state.processes[at];
    const runs = this.#state.claims[claim]?.runs ?? 0;
    if (process === undefined || runs >= this.#mostRuns) return;
    if (process.leaseIs === 'ended' && !this.#breaks('a process begins without a lease')) return;
    if (process.leaseIs === 'over') return;
    const run = runs + 1;
    this.#add(`${name}: run ${run}`, null, (next) => {
      const begun = next.claims[claim];
      const owner = next.processes[at];
      if (begun === undefined || owner === undefined) return;
      begun.row = { stands: 'running', process: at, lease: owner.lease, run };
      begun.runs = run;
      if (!this.#breaks('a claim is not on the disk before the call')) flush(next);
      owner.answers[claim] = { run, stands: 'running', inGrace: false };
      Object.assign(next.clients[client] ?? {}, { is: 'listening', claim, process: at, run });
    });
  }

  #listen(name: string, client: number, claim: number, process: number, run: number): void {
    this.#add(`${name}: joins run ${run}`, null, (next) => {
      Object.assign(next.clients[client] ?? {}, { is: 'listening', claim, process, run });
      const answer = next.processes[process]?.answers[claim] ?? null;
      if (answer !== null && !this.#breaks('a join does not end the grace')) answer.inGrace = false;
    });
  }

  #leave(client: number): void {
    const { claim, process } = this.#state.clients[client] ?? { claim: -1, process: -1 };
    this.#add(`client ${client} leaves`, null, (next) => {
      Object.assign(next.clients[client] ?? {}, away);
      const there = next.processes[process];
      const answer = there?.answers[claim];
      if (there === undefined || !works(there) || answer?.stands !== 'running') return;
      if (this.#breaks('the first client that leaves stops the run'))
        return cut(next, process, claim, answer);
      this.#noteLeft(next, process, claim, answer);
    });
  }

  /** Begins the grace of a run that has no client any more. */
  #noteLeft(next: State, process: number, claim: number, answer: Answer): void {
    if (listenersOf(next, process, claim).length > 0) return;
    if (!this.#breaks('a run without clients goes on')) answer.inGrace = true;
  }

  /** What may become of an answer that a process has. Without the database it is not settled, and its clients wait. */
  #ofAnswer(at: number, claim: number, { answers, life }: Process): void {
    const answer = answers[claim] ?? null;
    if (answer === null) return;
    const change = (
      step: string,
      failure: 'failures' | null,
      work: (next: State, answer: Answer, process: Process) => void,
    ): void =>
      this.#add(`run ${answer.run} of ${claim} in process ${at} ${step}`, failure, (next) => {
        const process = next.processes[at];
        const own = process?.answers[claim] ?? null;
        if (process !== undefined && own !== null) work(next, own, process);
      });
    if (answer.stands === 'settled')
      change('is forgotten', null, (_next, _own, process) => (process.answers[claim] = null));
    else if (answer.stands !== 'running') {
      if (life === 'up') change('is settled', null, (next, own) => this.#settle(next, at, claim, own));
    } else {
      if (answer.inGrace)
        change('is stopped at the end of its grace', null, (next, own) => cut(next, at, claim, own));
      change('comes to its end', null, (next, own) => {
        own.stands = 'complete';
        own.inGrace = false;
        if (this.#breaks('the end goes out before the charge')) serve(next, at, claim, own.run);
      });
      if (this.#state.left.failures === 0) return;
      change('fails before any text', 'failures', (next) => this.#fail(next, at, claim));
      change('breaks off, and is to be paid', 'failures', (_next, own) => {
        own.stands = 'cut';
        own.inGrace = false;
      });
    }
  }

  /** Nothing is charged, and the claim is free. That need not be on the disk: an owner frees what it does not have. */
  #fail(next: State, at: number, claim: number): void {
    const process = next.processes[at];
    const failed = next.claims[claim];
    const answer = process?.answers[claim] ?? null;
    if (process === undefined || failed === undefined || answer === null) return;
    if (process.life === 'up' && failed.row !== null && isOwn(failed.row, at, process, answer))
      failed.row = {
        ...failed.row,
        stands: this.#breaks('a failed run keeps its claim as ended') ? 'ended' : 'free',
      };
    process.answers[claim] = null;
    sendAway(next, at, claim);
  }

  /** Charges a run whose claim it still has, and gives its clients their end; else they are cut off, and nothing is charged. */
  #settle(next: State, at: number, claim: number, answer: Answer): void {
    const process = next.processes[at];
    const settled = next.claims[claim];
    if (process === undefined || settled === undefined) return;
    const isComplete = answer.stands === 'complete' || this.#breaks('what was cut is replayed');
    const { row } = settled;
    const mayCharge =
      isOwn(row, at, process, answer) || this.#breaks('a settlement does not look at the claim');
    if (!mayCharge) {
      process.answers[claim] = null;
      return sendAway(next, at, claim);
    }
    settled.charges++;
    settled.charged = answer.run;
    settled.wasComplete = answer.stands === 'complete';
    settled.row = { stands: 'ended', process: at, lease: process.lease, run: answer.run };
    flush(next);
    if (isComplete) {
      answer.stands = 'settled';
      serve(next, at, claim, answer.run);
    } else {
      process.answers[claim] = null;
      for (const client of listenersOf(next, at, claim))
        Object.assign(client, { is: 'told', process: -1, run: -1 });
    }
  }

  /** Ends a lease that is over, and frees what was claimed under it. */
  #sweep(at: number, { leaseIs: ownLease }: Process): void {
    if (ownLease !== 'held') return;
    for (const [other, { leaseIs, lease, life }] of this.#state.processes.entries()) {
      const isEarly =
        this.#breaks('a lease is ended before it is over') && life === 'stopped' && leaseIs === 'held';
      if (other === at || (leaseIs !== 'over' && !isEarly)) continue;
      this.#add(`process ${at} frees what ${other} has claimed`, null, (next) => {
        const swept = next.processes[other];
        if (swept !== undefined && !isEarly) swept.leaseIs = 'ended';
        for (const claim of next.claims) {
          const { row } = claim;
          if (row?.stands === 'running' && row.process === other && row.lease === lease)
            claim.row = { ...row, stands: 'free' };
        }
        flush(next);
      });
    }
  }

  /** Frees what this process has claimed and does not run, as after a failure that the database has forgotten. */
  #search(at: number, process: Process): void {
    if (this.#breaks('an owner does not free what it does not have')) return;
    for (const [claim, { row }] of this.#state.claims.entries()) {
      const isOurs = row?.stands === 'running' && row.process === at && row.lease === process.lease;
      if (!isOurs || process.answers[claim]?.run === row.run) continue;
      this.#add(`process ${at} frees ${claim}, which it does not run`, null, (next) => {
        const freed = next.claims[claim];
        if (freed !== undefined) freed.row = { ...row, stands: 'free' };
      });
    }
  }

  /** What may become of a process and of its lease. */
  #ofLife(at: number, { life, leaseIs }: Process): void {
    const change = (
      step: string,
      failure: 'kills' | 'stops' | 'losses' | null,
      work: (next: State, process: Process) => void,
    ): void => {
      if (failure !== null && this.#state.left[failure] === 0) return;
      this.#add(`process ${at} ${step}`, failure, (next) => {
        const process = next.processes[at];
        if (process !== undefined) work(next, process);
      });
    };
    if (life !== 'dead')
      change('is killed', 'kills', (next, process) => {
        process.life = 'dead';
        process.answers.fill(null);
        for (const claim of next.claims.keys()) sendAway(next, at, claim);
      });
    if (life === 'up') {
      change('stands still', 'stops', (_next, process) => (process.life = 'stopped'));
      change('loses the database', 'losses', (_next, process) => (process.life = 'alone'));
      if (leaseIs !== 'held')
        change('renews its lease', null, (next, process) => this.#renew(next, at, process));
      return;
    }
    if (leaseIs === 'held')
      change('has a lease that is over', null, (_next, process) => (process.leaseIs = 'over'));
    if (life === 'alone') change('has the database again', null, (_next, process) => (process.life = 'up'));
    if (life === 'stopped')
      change('goes on', null, (next, process) => {
        process.life = 'up';
        for (const [claim, answer] of process.answers.entries())
          if (answer?.stands === 'running') this.#noteLeft(next, at, claim, answer);
      });
  }

  /** One that was not ended has lost nothing. Else there is a new one, and what runs under the old one is stopped. */
  #renew(next: State, at: number, process: Process): void {
    if (process.leaseIs === 'ended') {
      process.lease++;
      if (!this.#breaks('an owner goes on when its lease was ended'))
        for (const [claim, answer] of process.answers.entries()) {
          if (answer === null || answer.stands === 'settled') continue;
          process.answers[claim] = null;
          sendAway(next, at, claim);
        }
    }
    process.leaseIs = 'held';
  }
}
