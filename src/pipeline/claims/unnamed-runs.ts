import type { Clock } from '../../domain/ports/clock.ts';
import { inTime } from '../../domain/time-limit.ts';
import type { AnswerSource, ClaimedRun } from './claimed-run.ts';

/**
 * How long a retry waits for the end of the old connection of its client, in milliseconds. One that is closed shows it in a
 * round trip; behind it, two equal requests are two.
 */
const maxNoticeMs = 2_000;

/** A run that a client has joined, until it leaves. */
export interface JoinedRun {
  readonly run: ClaimedRun;
  readonly asked: AnswerSource;
  readonly leave: () => void;
}

/** The runs of requests that their clients have not named, which are kept for retries. */
export class UnnamedRuns {
  readonly #clock: Clock;
  readonly #ofKeys = new Map<string, Set<ClaimedRun>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(run: ClaimedRun): void {
    const runs = this.#ofKeys.get(run.keyId) ?? new Set();
    this.#ofKeys.set(run.keyId, runs.add(run));
  }

  remove(run: ClaimedRun): void {
    const runs = this.#ofKeys.get(run.keyId);
    runs?.delete(run);
    if (runs?.size === 0) this.#ofKeys.delete(run.keyId);
  }

  /**
   * Has a client join the request of its key whose client has gone before its end, by SHA-256 of what it asks; `null` where there
   * is none. One whose client is still there is waited for: a client is often back before its old connection is seen to
   * have ended. No two join the same one: `enter` counts a client in the turn in which the run is found.
   */
  async join(
    keyId: string,
    request: string,
    enter: (run: ClaimedRun) => (() => void) | null,
  ): Promise<JoinedRun | null> {
    const same = [...(this.#ofKeys.get(keyId) ?? [])].filter((run) => run.request === request);
    const join = (): JoinedRun | null => {
      const run = same.find(({ isLeft }) => isLeft);
      const asked = run?.asked ?? null;
      const leave = run === undefined || asked === null ? null : enter(run);
      return run === undefined || asked === null || leave === null ? null : { run, asked, leave };
    };
    const untilMs = this.#clock.monotonicMs() + maxNoticeMs;
    for (;;) {
      const joined = join();
      const open = same.filter(({ mayBeLeft }) => mayBeLeft);
      const leftMs = untilMs - this.#clock.monotonicMs();
      if (joined !== null || open.length === 0 || leftMs <= 0) return joined;
      await inTime(Promise.race(open.map(({ left }) => left)), leftMs, this.#clock);
    }
  }
}
