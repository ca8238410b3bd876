import type { ClaimName, Claims } from '../../domain/ports/claims.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { RecordPages } from '../../domain/ports/records.ts';
import { ClaimedRun } from './claimed-run.ts';
import type { RunOptions } from './claimed-run.ts';
import { KeptAnswers } from './kept-answers.ts';
import type { Peers } from './peers.ts';
import { Turns } from './turns.ts';
import { UnnamedRuns } from './unnamed-runs.ts';
import type { JoinedRun } from './unnamed-runs.ts';

/** What a run takes beside the text of its answer, in bytes, where that is kept. */
const runBytes = 4_096;

/** How many clients may join one request, and how many of a key may join any, or wait to, at a time. */
export const maxJoinsOfRequest = 8;
export const maxJoinsOfKey = 16;

/** How many bodies of a key may be in memory at a time of requests without a slot. */
const maxBodiesOfKey = 16;

/** How long a request waits until one of these gives way, in milliseconds: most are compared at once. */
const maxBodyWaitMs = 2_000;

/** For how many requests of a key the other processes may be asked at a time. */
const maxAsksOfKey = 16;

/** How many requests of a key may be looked up in the database at a time: no start bounds those. */
export const maxLookUpsOfKey = 64;

/** The pause after which it is looked again whether clients still read an answer whose time is over, in milliseconds. */
const readOnMs = 1_000;

/** What the config says of claimed requests. */
export interface ResumeSettings {
  /** How long a request goes on whose last client has left, in milliseconds. */
  readonly graceMs: number;
  /** How long an answer that has ended can be had again, in milliseconds. */
  readonly replayMs: number;
}

interface RunningClaimsOptions {
  /** The other processes on the database; `null` where there is none, or none that can be asked. */
  readonly peers: Peers | null;
  readonly store: Claims & Pick<RecordPages, 'findRecord'>;
  /** Whether no other process may end the lease under which claims are begun. */
  readonly holdsLease: () => boolean;
  readonly clock: Clock;
  /** Of the config in force. */
  readonly settings: () => ResumeSettings;
}

/** The requests of this process that others may join: those that run, and those whose answers are kept. */
export class RunningClaims {
  readonly store: RunningClaimsOptions['store'];
  readonly peers: Peers | null;
  readonly #clock: Clock;
  readonly #holdsLease: () => boolean;
  readonly #settings: () => ResumeSettings;
  /** Those whose names are taken, by them. */
  readonly #named = new Map<string, ClaimedRun>();
  /** Those that are kept for retries alone. */
  readonly #unnamed: UnnamedRuns;
  /** All of them, by the ids of their requests. */
  readonly #runs = new Map<string, ClaimedRun>();
  /** Those that have ended and are kept, each with what ends that. */
  readonly #held = new Map<ClaimedRun, () => void>();
  readonly #kept = new KeptAnswers((run) => this.#drop(run));
  readonly #joins = new Turns(maxJoinsOfKey);
  readonly #bodies = new Turns(maxBodiesOfKey);
  readonly #asks = new Turns(maxAsksOfKey);
  readonly #lookUps = new Turns(maxLookUpsOfKey);
  /** How often the lease was lost under which claims are begun. */
  #lostLeases = 0;

  constructor({ store, peers, holdsLease, clock, settings }: RunningClaimsOptions) {
    this.#holdsLease = holdsLease;
    this.store = store;
    this.peers = peers;
    this.#clock = clock;
    this.#unnamed = new UnnamedRuns(clock);
    this.#settings = settings;
  }

  /** How much of answers is kept, in bytes. */
  get keptBytes(): number {
    return this.#kept.bytes;
  }

  find(claim: ClaimName): ClaimedRun | undefined {
    return this.#named.get(nameOf(claim));
  }

  /** The run of a request of a key. */
  findRequest(keyId: string, requestId: string): ClaimedRun | undefined {
    const run = this.#runs.get(requestId);
    return run?.keyId === keyId ? run : undefined;
  }

  /** Has a client join the request that its key has sent without a name, and whose client has gone: see `UnnamedRuns`. */
  joinLeft(keyId: string, request: string): Promise<JoinedRun | null> {
    return this.#unnamed.join(keyId, request, (run) => this.join(run));
  }

  /** A request asks for a claim of which there is no run here. */
  begin(claim: ClaimName, requestId: string): ClaimedRun {
    const name = nameOf(claim);
    const onFreed = (): void => void this.#named.delete(name);
    const run = this.#add(claim.keyId, claim, requestId, {
      graceMs: () => this.#settings().graceMs,
      onFreed,
    });
    this.#named.set(name, run);
    return run;
  }

  /** A request whose client has not named it is kept for a retry, for as long as its key has it. */
  beginUnnamed(keyId: string, joinRetriesMs: number, requestId: string): ClaimedRun {
    const run = this.#add(keyId, null, requestId, { graceMs: () => joinRetriesMs, onFreed: () => {} });
    this.#unnamed.add(run);
    return run;
  }

  #add(
    keyId: string,
    claim: ClaimName | null,
    requestId: string,
    options: Pick<RunOptions, 'graceMs' | 'onFreed'>,
  ): ClaimedRun {
    const run: ClaimedRun = new ClaimedRun(keyId, claim, requestId, {
      ...options,
      clock: this.#clock,
      memory: {
        take: (bytes) => this.#kept.take(keyId, bytes),
        giveBack: (bytes) => this.#kept.giveBack(keyId, bytes),
        blocks: this.#kept.blocks,
      },
      onOver: () => this.#over(run),
    });
    this.#runs.set(requestId, run);
    return run;
  }

  /** The request of a run is over: its answer is kept, or what has become of it, or nothing. */
  #over(run: ClaimedRun): void {
    if (run.phase !== 'ended') {
      if (!hasState(run) || !this.#hold(run)) this.#remove(run);
    } else this.#dropDelivered(run);
  }

  /** What is kept for a retry is not, once a client has its end. */
  #dropDelivered(run: ClaimedRun): void {
    const { claim, phase, answer } = run;
    if (claim === null && phase === 'ended' && answer.wasDelivered) this.#drop(run);
  }

  #remove(run: ClaimedRun): void {
    this.#runs.delete(run.requestId);
    this.#unnamed.remove(run);
  }

  /** The answer of a run is complete and paid for: it can be had again for a while, if all of it is kept. */
  keep(run: ClaimedRun): void {
    run.ended();
    if (!run.answer.isWhole || !this.#hold(run)) run.free();
  }

  /**
   * A client joins a request, or waits to; returns what ends that, or `null` where there are too many. One that comes back for
   * what its client has left takes the place of that one, and is not counted among those of its key.
   */
  join(run: ClaimedRun): (() => void) | null {
    const comesBack =
      run.joins === 0 && (run.claim === null || run.phase === 'running') && run.answer.hasNoClient;
    const hasRoom = comesBack || run.joins < maxJoinsOfRequest;
    const leave = comesBack ? () => {} : hasRoom ? this.#joins.take(run.keyId) : null;
    if (leave === null) return null;
    run.joins++;
    return () => {
      run.joins--;
      leave();
    };
  }

  /** The client of another process has all of the answer of a request. */
  delivered(keyId: string, requestId: string): void {
    const run = this.findRequest(keyId, requestId);
    run?.answer.noteDelivered();
    if (run !== undefined) this.#dropDelivered(run);
  }

  /** The body of a request of a key is to be read without a slot; likewise, and one that comes with many waits for a moment. */
  readBody(keyId: string): Promise<(() => void) | null> {
    return this.#bodies.wait(keyId, maxBodyWaitMs, this.#clock);
  }

  /** Other processes are asked for a request of a key; likewise. */
  ask(keyId: string): (() => void) | null {
    return this.#asks.take(keyId);
  }

  /** A request of a key is looked up in the database; likewise. */
  lookUp(keyId: string): (() => void) | null {
    return this.#lookUps.take(keyId);
  }

  /** Whether a claim that is begun now is this process's alone. */
  get holdsLease(): boolean {
    return this.#holdsLease();
  }

  /** How often the lease was lost under which claims are begun. */
  get lostLeases(): number {
    return this.#lostLeases;
  }

  /** The lease of this process has ended: what it runs under claims may be run by others, and is stopped. */
  leaseEnded(): void {
    this.#lostLeases++;
    for (const run of this.#runs.values()) run.lose();
  }

  /** Drops all answers that are kept. */
  close(): void {
    this.#kept.clear();
  }

  /** Keeps what is known of a run that has ended, for a while; returns whether there is room for it. */
  #hold(run: ClaimedRun): boolean {
    const replayMs = run.claim === null ? run.graceMs : this.#settings().replayMs;
    const bytes = runBytes + 2 * JSON.stringify(run.asked?.request ?? null).length;
    // What a failure has left, which cost nothing, takes no answer's place.
    const evicts = run.phase === 'ended';
    if (replayMs === 0 || !this.#kept.take(run.keyId, bytes, evicts)) return false;
    const end = (): void => {
      if (run.joins === 0) this.#drop(run);
      else cancel = this.#clock.schedule(readOnMs, end);
    };
    let cancel = this.#clock.schedule(replayMs, end);
    this.#kept.add(run);
    this.#held.set(run, () => {
      cancel();
      this.#kept.remove(run);
      this.#kept.giveBack(run.keyId, bytes);
    });
    return true;
  }

  /** What has ended is not kept any longer. A client that is being sent its answer is cut off. */
  #drop(run: ClaimedRun): void {
    run.free();
    run.answer.forget();
    this.#held.get(run)?.();
    this.#held.delete(run);
    this.#remove(run);
  }
}

/** Whether the state of a request that has ended without an answer can be asked for: that of a response can. */
function hasState({ asked, settled }: ClaimedRun): boolean {
  const kind = settled?.result.kind;
  return (asked?.request.responses ?? null) !== null && (kind === 'interrupted' || kind === 'failed');
}

function nameOf({ keyId, name }: ClaimName): string {
  return `${keyId} ${name}`;
}
