import { setTimeout as wait } from 'node:timers/promises';
import { RefusedError } from './ask.ts';
import type { AskBy, Question } from './ask.ts';
import { leaseMs, longestMs } from './disturbances.ts';
import type { Disturbances } from './disturbances.ts';
import { textsOf } from './numbered-texts.ts';
import type { Words } from './numbered-texts.ts';
import type { Observations } from './observations.ts';

/** How long gateways and clients may take to notice that a lease or a disturbance is over, in milliseconds. */
const noticeMs = 15_000;
/**
 * For how long a question is asked again without a longer pause, in milliseconds in which a gateway can serve, since it was first
 * asked or was run anew: the run that followed a loss may be lost likewise.
 */
const maxAskingMs = leaseMs + longestMs + noticeMs;
/**
 * The same where several gateways are disturbed, in milliseconds without a disturbance: until the lease of a process that is
 * gone is over, and others have reached their database for 5 seconds, and end it.
 */
export const maxQuietMs = leaseMs + 5_000;
/** The longest time after which a client gives a request up, where gateways are disturbed, in milliseconds. */
const maxRequestMs = 8_000;
/** When a request is sent anew whose library has neither an answer nor an error, in milliseconds: some wait without end. */
const maxLibraryMs = 40_000;
/** How many requests are sent again late, where gateways are disturbed, and how late at the most, in milliseconds. */
const comesBackLate = 0.08;
const maxAwayMs = 14_000;

/** A client, which has a key of its own, and what has become of its questions. */
export interface Asker {
  readonly name: string;
  readonly ask: AskBy;
  readonly secret: string;
  readonly questions: number[];
  cuts: number;
}

/** What questions are asked with. */
interface AskingOptions {
  /** Where they are sent. */
  readonly url: string;
  readonly isNamed: boolean;
  readonly isDisturbed: boolean;
  /** Whether one gateway has the database: nothing but its own end holds a claim up. */
  readonly isOnlyProcess: boolean;
  readonly disturbances: Pick<Disturbances, 'calmMs' | 'overMs'>;
  readonly observations: Observations;
  readonly words: Words;
  readonly random: () => number;
  readonly onFault: (fault: string) => void;
}

/** Questions that are asked again and again until their clients have what they asked for. */
export class Asking {
  answered = 0;
  /** How many were told that their answer is gone. */
  told = 0;
  /** For how long one was asked at the most, in milliseconds in which a gateway could serve. */
  longestMs = 0;
  readonly #options: AskingOptions;
  /** When the last call of each began: in milliseconds in which a gateway could serve, and on the monotonic clock. */
  readonly #called = new Map<number, { readonly calmMs: number; readonly atMs: number }>();

  constructor(options: AskingOptions) {
    this.#options = options;
  }

  /** Notes that a question was called upstream. */
  called(question: number): void {
    this.#called.set(question, { calmMs: this.#options.disturbances.calmMs, atMs: performance.now() });
  }

  /** Asks a question, whose connection is cut so often, until its client has all of the answer, or was told that it is gone. */
  async askAgain({ name: client, ask, secret }: Asker, question: Question, cuts: number): Promise<void> {
    const { url, isNamed, isDisturbed, isOnlyProcess, disturbances, observations, words, random, onFault } =
      this.#options;
    const { number, asker } = question;
    const below = (limit: number): number => Math.floor(random() * limit);
    const name = `question ${number} (${client}, ${question.protocol}, ${question.stream ? 'streamed' : 'whole'})`;
    let startedMs = disturbances.calmMs;
    let askedMs = performance.now();
    const noteEnd = (what: 'served' | 'told' | 'refused'): void => {
      this.longestMs = Math.max(this.longestMs, disturbances.calmMs - startedMs);
      observations.note(number, { what, asked: observations.lastOf(number, asker) ?? 0 });
    };
    let last = '';
    const isHeldUp = isDisturbed && !isOnlyProcess;
    const mayGoOn = (): boolean => {
      // One of several that held the answer up, or was asked by chance, may have been disturbed again and again.
      if (isHeldUp) return this.#quietMs(number, askedMs) < maxQuietMs;
      return disturbances.calmMs < Math.max(startedMs, this.#called.get(number)?.calmMs ?? 0) + maxAskingMs;
    };
    for (let tries = 1; mayGoOn(); tries++) {
      try {
        const requestMs = isDisturbed ? 1 + below(maxRequestMs) : null;
        const asking = ask(question, { url, secret, isNamed, requestMs });
        const text = await Promise.race([asking, wait(maxLibraryMs, null, { ref: false })]);
        if (text === null) throw new Error('its library did not give it up');
        noteEnd('served');
        this.answered++;
        if (text !== textsOf(number, words).join('')) onFault(`${name}: has another text: ${text}`);
        return;
      } catch (error) {
        const code = error instanceof RefusedError ? error.code : null;
        if (code === 'replay_unavailable') {
          noteEnd('told');
          return void this.told++;
        }
        if (code === 'idempotency_key_reused') noteEnd('refused');
        last = String(error);
        // At once, as libraries do, or a little later, as people do, or late; what is away for longer is waited for.
        if (isDisturbed && random() < comesBackLate) {
          await wait(below(maxAwayMs));
          startedMs = disturbances.calmMs;
          askedMs = performance.now();
        } else if (tries > cuts) await wait(200);
        else if (random() < 0.5) await wait(below(30));
      }
    }
    const boundMs = isHeldUp
      ? `${maxQuietMs} ms without a disturbance`
      : `${maxAskingMs} ms in which a gateway could serve`;
    onFault(`${name}: has no answer after ${boundMs}, and the last one was ${last}`);
  }

  /** For how long a question is asked without a longer pause, nothing was disturbed, and it was not called, in milliseconds. */
  #quietMs(question: number, askedMs: number): number {
    const nowMs = performance.now();
    const overMs = this.#options.disturbances.overMs ?? nowMs;
    return nowMs - Math.max(askedMs, overMs, this.#called.get(question)?.atMs ?? 0);
  }
}
