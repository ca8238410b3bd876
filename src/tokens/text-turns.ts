import { Roster } from '../shared/roster.ts';
import type { CountReply } from './thread-messages.ts';

/** How many UTF-16 code units are counted at once: one word of any length takes the square of its length. */
const pieceChars = 2_048;

/** A text that waits for its count, and how far the count has come. */
interface Waiting {
  readonly text: string;
  countedChars: number;
  tokens: number;
  readonly resolve: (tokens: number) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The texts that wait for their count. They take turns, a piece each, so that a long text does not hold up the ends of
 * other answers.
 */
export class TextTurns {
  /** In the order of their turns: the first one's piece is being counted. */
  readonly #waiting = new Roster<Waiting>();
  #chars = 0;

  /** The size of all texts that wait, in UTF-16 code units. */
  get chars(): number {
    return this.#chars;
  }

  /** How many texts wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Adds a text behind all others; resolves with its tokens. */
  add(text: string): Promise<number> {
    this.#chars += text.length;
    return new Promise((resolve, reject) => {
      this.#waiting.add({ text, countedChars: 0, tokens: 0, resolve, reject });
    });
  }

  /** The piece to count now; `null` when no text waits. */
  get piece(): string | null {
    const turn = this.#waiting.first;
    if (turn === null) return null;
    const { text, countedChars } = turn.member;
    return text.slice(countedChars, countedChars + pieceChars);
  }

  /** Takes what became of that piece: the next turn is that of the next text. */
  take(reply: CountReply): void {
    const turn = this.#waiting.first;
    if (turn === null) return;
    this.#waiting.remove(turn);
    const counting = turn.member;
    if (reply.kind === 'failed') return this.#reject(counting, new Error(reply.reason));
    counting.tokens += reply.tokens;
    counting.countedChars += pieceChars;
    if (counting.countedChars < counting.text.length) this.#waiting.add(counting);
    else {
      this.#chars -= counting.text.length;
      counting.resolve(counting.tokens);
    }
  }

  /** Rejects all texts that wait. */
  rejectAll(error: Error): void {
    for (let turn = this.#waiting.first; turn !== null; turn = this.#waiting.first) {
      this.#waiting.remove(turn);
      this.#reject(turn.member, error);
    }
  }

  #reject({ text, reject }: Waiting, error: Error): void {
    this.#chars -= text.length;
    reject(error);
  }
}
