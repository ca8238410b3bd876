import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Actor } from './virtual-time.ts';
import type { World } from './world.ts';

/** How long a call may take before its connection is given up, in milliseconds. */
const answerLimitMs = 10_000;

/** How long a step may still be made after its connection was lost, in milliseconds. */
const lateMs = 5_000;

/** The longest delay, in milliseconds, of a call that goes well. */
const goodDelayMs = 40;

/** A connection: what is sent on it arrives and is answered in order, until it is lost. */
interface Lane {
  sent: number;
  lastArrived: number;
  arrivesMs: number;
  answersMs: number;
}

type Fate = 'good' | 'slow' | 'lost' | 'answer lost' | 'late' | 'hung';

/** The connections of one process to the database. */
export class Wire {
  /** Why this process alone can't reach the database; `null` when it can. */
  cut: 'refused' | 'silent' | null = null;
  /** Until when something was wrong with these connections, in virtual time. */
  disturbedUntilMs = Number.NEGATIVE_INFINITY;
  readonly #world: World;
  readonly #actor: Actor;
  readonly #lanes = new Map<string, Lane>();

  constructor(world: World, actor: Actor) {
    this.#world = world;
    this.#actor = actor;
  }

  /** Has the database make a step; resolves and rejects as the call of a driver does. */
  call<Answer>(name: string, laneName: string, step: () => Answer | Promise<Answer>): Promise<Answer> {
    const { time, chance, counts, database, checks } = this.#world;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const sentMs = time.nowMs;
    counts['calls of the database']++;
    const inTurn = (atMs: number, act: () => void): void =>
      void time.after(Math.max(0, atMs - time.nowMs), act, this.#actor);
    const fail = (atMs: number, message: string): void =>
      inTurn(atMs, () => reject(new StorageError(message, 'slow')));
    const lose = (message: string): void => {
      this.#lanes.delete(laneName);
      const silent = (this.cut ?? database.away) === 'silent';
      fail(silent ? sentMs + answerLimitMs : time.nowMs + chance.between(0, 5), message);
    };
    if (this.#isUnreachable()) {
      lose('the database is away');
      return promise;
    }
    const fate = this.#fate();
    const lane = this.#lane(laneName);
    const number = ++lane.sent;
    const arrivesMs = this.#arrival(fate, lane);
    if (fate !== 'good') this.#note(`${name}: ${fate}`);
    if (fate === 'lost' || fate === 'late') lose('the connection was lost');
    if (fate === 'lost') return promise;
    const arrive = (): void => {
      checks.arrived();
      if (number < lane.lastArrived) counts['calls that overtook an earlier one']++;
      lane.lastArrived = Math.max(lane.lastArrived, number);
      if (this.#isUnreachable()) return lose('the connection was lost');
      const answer = attempt(step);
      // The process may be gone when its answer comes, and no process must handle a violation as if the database failed.
      answer.catch((error: unknown) => checks.noteViolation(error));
      this.#note(name);
      checks.stepped();
      if (fate === 'answer lost') return lose('the connection was lost before the answer');
      const answersMs = Math.max(time.nowMs + this.#goodDelay(), lane.answersMs);
      if (answersMs > sentMs + answerLimitMs) return;
      lane.answersMs = answersMs;
      inTurn(answersMs, () => (this.#isUnreachable() ? lose('the connection was lost') : resolve(answer)));
    };
    checks.sent();
    time.after(arrivesMs - sentMs, arrive);
    if (arrivesMs + goodDelayMs > sentMs + answerLimitMs) {
      this.disturb(sentMs + answerLimitMs);
      this.#lanes.delete(laneName);
      fail(sentMs + answerLimitMs, 'the database does not answer');
    }
    return promise;
  }

  /** Notes that something is wrong with these connections. */
  disturb(untilMs: number): void {
    this.disturbedUntilMs = Math.max(this.disturbedUntilMs, untilMs);
  }

  #isUnreachable(): boolean {
    return (this.cut ?? this.#world.database.away) !== null;
  }

  #lane(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { sent: 0, lastArrived: 0, arrivesMs: 0, answersMs: 0 };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  #fate(): Fate {
    const { chance, counts, plan, time } = this.#world;
    if (time.nowMs >= plan.quietMs) return 'good';
    const { slowCalls, lostCalls, hungCalls } = plan.weather;
    if (slowCalls > 0 && chance.isTrue(slowCalls)) return 'slow';
    if (lostCalls > 0 && chance.isTrue(lostCalls)) {
      const fate = chance.pick(['lost', 'answer lost', 'answer lost', 'late'] as const);
      if (fate === 'lost') counts['calls that were lost before they took effect']++;
      if (fate === 'late') counts['calls that took effect after their failure was reported']++;
      if (fate === 'answer lost') counts['calls that took effect and whose answer was lost']++;
      return fate;
    }
    if (hungCalls === 0 || !chance.isTrue(hungCalls)) return 'good';
    counts['calls that hung']++;
    return 'hung';
  }

  /** When a call arrives: behind those that were sent on the same connection, as long as that is not lost. */
  #arrival(fate: Fate, lane: Lane): number {
    const { chance, time } = this.#world;
    const delayMs = {
      good: () => this.#goodDelay(),
      slow: () => chance.between(goodDelayMs, 2_500),
      lost: () => 0,
      'answer lost': () => this.#goodDelay(),
      late: () => chance.between(1, lateMs),
      hung: () => chance.between(1_000, answerLimitMs + lateMs),
    }[fate]();
    if (fate !== 'good') this.disturb(time.nowMs + delayMs + goodDelayMs);
    if (fate === 'late') return time.nowMs + delayMs;
    // What is sent after it may use another connection.
    if (fate === 'slow' && chance.isTrue(0.5)) return time.nowMs + delayMs;
    lane.arrivesMs = Math.max(lane.arrivesMs, time.nowMs + delayMs);
    return lane.arrivesMs;
  }

  #goodDelay(): number {
    const { chance } = this.#world;
    return chance.isTrue(0.1) ? chance.between(1, goodDelayMs) : chance.between(0, 3);
  }

  #note(text: string): void {
    this.#world.note(() => `  ${this.#actor.name} ${text}`);
  }
}

/** The answer to a step, or its fault: it is thrown where the caller waits for it, if that is still there. */
async function attempt<Answer>(step: () => Answer | Promise<Answer>): Promise<Answer> {
  return step();
}
