import { Roster } from '../shared/roster.ts';
import type { Position } from '../shared/roster.ts';
import type { Clock } from './ports/clock.ts';

/** A wait as its limit keeps it. */
interface Waiting {
  readonly dueMs: number;
  readonly reject: (error: Error) => void;
  /** Whether its time is up. */
  isOver: boolean;
}

/** One answer that is waited for. */
export type Wait = Readonly<Pick<Waiting, 'isOver'>>;

/**
 * Bounds the time of answers, which is the same for all. So they become overdue in the order in which they were asked
 * for, and one timer, for the oldest, serves them all.
 */
export class TimeLimit {
  readonly #limitMs: number;
  readonly #clock: Clock;
  readonly #overdue: () => Error;
  /** In the order of their dues. */
  readonly #waits = new Roster<Waiting>();
  #cancel: (() => void) | null = null;

  /** `overdue` makes the error of an answer that took longer than `limitMs`. */
  constructor(limitMs: number, clock: Clock, overdue: () => Error) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#overdue = overdue;
  }

  /** Settles as the answer does, or rejects when its time is up; the answer itself goes on, and can see that. */
  bound<Result>(ask: (wait: Wait) => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const wait: Waiting = { dueMs: this.#clock.monotonicMs() + this.#limitMs, reject, isOver: false };
      const position = this.#waits.add(wait);
      this.#cancel ??= this.#clock.schedule(this.#limitMs, () => this.#rejectOverdue());
      ask(wait).then(
        (result) => {
          this.#end(position);
          resolve(result);
        },
        (error: unknown) => {
          this.#end(position);
          reject(error);
        },
      );
    });
  }

  #end(position: Position<Waiting>): void {
    if (!this.#waits.remove(position) || this.#waits.size > 0) return;
    this.#cancel?.();
    this.#cancel = null;
  }

  #rejectOverdue(): void {
    this.#cancel = null;
    const nowMs = this.#clock.monotonicMs();
    for (let position = this.#waits.first; position !== null; position = this.#waits.first) {
      const wait = position.member;
      if (wait.dueMs > nowMs) {
        this.#cancel = this.#clock.schedule(wait.dueMs - nowMs, () => this.#rejectOverdue());
        return;
      }
      this.#waits.remove(position);
      wait.isOver = true;
      wait.reject(this.#overdue());
    }
  }
}

/** The result of some work; `null` if it fails or takes longer than a time, in milliseconds. */
export function inTime<Result>(work: Promise<Result>, limitMs: number, clock: Clock): Promise<Result | null> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(limitMs, () => resolve(null));
    const end = (result: Result | null): void => {
      cancel();
      resolve(result);
    };
    work.then(end, () => end(null));
  });
}

/** Resolves with whether a promise is resolved within a time, in milliseconds. */
export async function within(done: Promise<void>, limitMs: number, clock: Clock): Promise<boolean> {
  return (await inTime(done, limitMs, clock)) !== null;
}
