import type { ClaimName, Claims } from '../../domain/ports/claims.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { RecordPages } from '../../domain/ports/records.ts';
import { inTime } from '../../domain/time-limit.ts';
import { ClaimedRun } from './claimed-run.ts';
import type { RunOptions } from './claimed-run.ts';
import { KeptAnswers } from './kept-answers.ts';
import type { Peers } from './peers.ts';

/** What a run takes beside the text of its answer, in bytes, where that is kept. */
const runBytes = 4_096;

/** How many clients may join one request, and how many of a key may join any, or wait to, at a time. */
export const maxJoinsOfRequest = 8;
export const maxJoinsOfKey = 16;

/** How many requests of a key may be looked up in the database at a time: no start bounds those. */
export const maxLookUpsOfKey = 64;

/**
 * How long a retry waits for the end of the old connection of its client, in milliseconds. One that is closed shows it in a
 * round trip; behind it, two equal requests are two.
 */
const maxNoticeMs = 2_000;

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
  readonly clock: Clock;
  /** Of the config in force. */
  readonly settings: () => ResumeSettings;
}

/** The claimed requests of this process that run, or whose answers are kept. */
export class RunningClaims {
  readonly store: RunningClaimsOptions['store'];
  readonly peers: Peers | null;
  readonly #clock: Clock;
  readonly #settings: () => ResumeSettings;
  /** Those whose names are taken, by them. */
  readonly #named = new Map<string, ClaimedRun>();
  /** Those that are kept for retries alone, by their keys. */
  readonly #unnamed = new Map<string, Set<ClaimedRun>>();
  /** All of them, by the ids of their requests. */
  readonly #runs = new Map<string, ClaimedRun>();
  /** Those that have ended and are kept, each with what ends that. */
  readonly #held = new Map<ClaimedRun, () => void>();
  readonly #kept = new KeptAnswers((run) => this.#drop(run));
  readonly #joins = new Turns(maxJoinsOfKey);
  readonly #lookUps = new Turns(maxLookUpsOfKey);
  /** How often the lease was lost under which claims are begun. */
  #lostLeases = 0;

  constructor({ store, peers, clock, settings }: RunningClaimsOptions) {
    this.store = store;
    this.peers = peers;
    this.#clock = clock;
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

  /**
   * The run of a request of a key that its client has not named, and whose client has gone before its end, by SHA-256 of what it
   * asks. One whose client is still there is waited for: a client is often back before its old connection is seen to have ended.
   */
  async findLeft(keyId: string, request: string): Promise<ClaimedRun | undefined> {
    const same = [...(this.#unnamed.get(keyId) ?? [])].filter(
      (run) => run.request === request && run.mayBeLeft,
    );
    const findLeft = (): ClaimedRun | undefined => same.find(({ isLeft }) => isLeft);
    if (findLeft() === undefined && same.length > 0)
      await inTime(Promise.race(same.map(({ left }) => left)), maxNoticeMs, this.#clock);
    return findLeft();
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
    const runs = this.#unnamed.get(keyId) ?? new Set();
    this.#unnamed.set(keyId, runs.add(run));
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
      },
      onOver: () => this.#over(run),
    });
    this.#runs.set(requestId, run);
    return run;
  }

  /** The request of a run is over: its answer is kept, or what has become of it, or nothing. */
  #over(run: ClaimedRun): void {
    const { claim, phase, answer } = run;
    if (phase !== 'ended') {
      if (!hasState(run) || !this.#hold(run)) this.#remove(run);
    } else if (claim === null && answer.wasDelivered) this.#drop(run);
  }

  #remove(run: ClaimedRun): void {
    const { keyId, requestId } = run;
    this.#runs.delete(requestId);
    const unnamed = this.#unnamed.get(keyId);
    unnamed?.delete(run);
    if (unnamed?.size === 0) this.#unnamed.delete(keyId);
  }

  /** The answer of a run is complete and paid for: it can be had again for a while, if all of it is kept. */
  keep(run: ClaimedRun): void {
    run.ended();
    if (!run.answer.isWhole || !this.#hold(run)) run.free();
  }

  /** A client joins a request, or waits to; returns what ends that, or `null` where there are too many. */
  join(run: ClaimedRun): (() => void) | null {
    const leave = run.joins >= maxJoinsOfRequest ? null : this.#joins.take(run.keyId);
    if (leave === null) return null;
    run.joins++;
    return () => {
      run.joins--;
      leave();
    };
  }

  /** A client of a key has its body read without a slot; likewise. */
  read(keyId: string): (() => void) | null {
    return this.#joins.take(keyId);
  }

  /** A request of a key is looked up in the database; likewise. */
  lookUp(keyId: string): (() => void) | null {
    return this.#lookUps.take(keyId);
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
    if (replayMs === 0 || !this.#kept.take(run.keyId, bytes)) return false;
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

/** Turns at something, of which each key may have some at a time. */
class Turns {
  readonly #most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a turn; returns what gives it back, or `null` where there is none. */
  take(keyId: string): (() => void) | null {
    const taken = this.#taken.get(keyId) ?? 0;
    if (taken >= this.#most) return null;
    this.#taken.set(keyId, taken + 1);
    return () => {
      const left = (this.#taken.get(keyId) ?? 1) - 1;
      if (left === 0) this.#taken.delete(keyId);
      else this.#taken.set(keyId, left);
    };
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
