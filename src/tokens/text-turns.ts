import { Roster } from '../shared/roster.ts';
import type { CountReply } from './token-worker.ts';

/** How many UTF-16 code units are counted at once: one word of any length takes the square of its length. */
const pieceChars = 2_048;

/** `now` for a text that a request waits for, `when_idle` for any other. */
export type CountTime = 'now' | 'when_idle';

/** A text that waits for its count, and how far the count has come. */
interface Waiting {
  readonly text: string;
  readonly time: CountTime;
  countedChars: number;
  tokens: number;
  readonly resolve: (tokens: number) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The texts that wait for their count. They take turns, a piece each, so that a long text does not hold up the ends of
 * other answers. Texts that no request waits for have their turns only while there are no others.
 */
export class TextTurns {
  /** In the order of their turns, without the one whose piece is being counted. */
  readonly #waiting: Readonly<Record<CountTime, Roster<Waiting>>> = {
    now: new Roster(),
    when_idle: new Roster(),
  };
  #counting: Waiting | null = null;
  #chars = 0;

  /** The size of all texts that requests wait for, in UTF-16 code units. */
  get chars(): number {
    return this.#chars;
  }

  /** Whether a piece is being counted. */
  get isCounting(): boolean {
    return this.#counting !== null;
  }

  /** Adds a text behind all others of its time; resolves with its tokens. */
  add(text: string, time: CountTime): Promise<number> {
    if (time === 'now') this.#chars += text.length;
    return new Promise((resolve, reject) => {
      this.#waiting[time].add({ text, time, countedChars: 0, tokens: 0, resolve, reject });
    });
  }

  /** The piece to count next, after the one before was taken; `null` when no text waits. */
  next(): string | null {
    const { now, when_idle: idle } = this.#waiting;
    const waiting = now.first === null ? idle : now;
    const turn = waiting.first;
    if (turn === null) return null;
    waiting.remove(turn);
    this.#counting = turn.member;
    const { text, countedChars } = turn.member;
    return text.slice(countedChars, countedChars + pieceChars);
  }

  /** Takes what became of that piece: the next turn is that of the next text. */
  take(reply: CountReply): void {
    const counting = this.#counting;
    if (counting === null) return;
    this.#counting = null;
    if (reply.kind === 'failed') return this.#reject(counting, new Error(reply.reason));
    counting.tokens += reply.tokens;
    counting.countedChars += pieceChars;
    if (counting.countedChars < counting.text.length) this.#waiting[counting.time].add(counting);
    else {
      this.#leave(counting);
      counting.resolve(counting.tokens);
    }
  }

  /** Rejects all texts that wait. */
  rejectAll(error: Error): void {
    const counting = this.#counting;
    this.#counting = null;
    if (counting !== null) this.#reject(counting, error);
    for (const waiting of Object.values(this.#waiting))
      for (let turn = waiting.first; turn !== null; turn = waiting.first) {
        waiting.remove(turn);
        this.#reject(turn.member, error);
      }
  }

  #reject(waiting: Waiting, error: Error): void {
    this.#leave(waiting);
    waiting.reject(error);
  }

  #leave({ text, time }: Waiting): void {
    if (time === 'now') this.#chars -= text.length;
  }
}
