import type { MetricsText } from '../../telemetry/metrics/metric-sums.ts';
import type { Clock } from '../../domain/ports/clock.ts';

/** What the primary process asks a worker; the answer is a text or nothing. */
export type WorkerQuestion =
  /** Has no data in its answer: that one comes, however late, shows that the event loop runs. */
  | { readonly name: 'alive' }
  /** Its metrics. */
  | { readonly name: 'figures' }
  /** What it alone knows of the status, as JSON. */
  | { readonly name: 'status' }
  /** What it alone knows of upstreams and shadow routes, as JSON. */
  | { readonly name: 'views' }
  /** Why it can't take requests; nothing when it can. */
  | { readonly name: 'why not ready' }
  /** Puts a config into force; the answer is why it could not. */
  | ({ readonly name: 'reload' } & Reload)
  /** Logs and counts that the config was not put into force, for all workers. */
  | { readonly name: 'reload failed'; readonly reason: string };

/** A config that all workers put into force. */
export interface Reload {
  /** The text of the config file, which may have changed again since it was read; `null` for that of the environment. */
  readonly text: string | null;
  /** Whether this worker counts it, as one of all does. */
  readonly isCounted: boolean;
}

/** What a worker asks the primary process. */
export type PrimaryQuestion =
  /** The text of the config file that is in force; nothing when there is no file. */
  | { readonly name: 'config text' }
  /** The exposition of the metrics of all workers. */
  | { readonly name: 'metrics' }
  /** What each worker alone knows of the status, as a list in JSON. */
  | { readonly name: 'statuses' }
  /** What each worker alone knows of upstreams and shadow routes, as a list in JSON. */
  | { readonly name: 'all views' }
  /** Why no worker can take requests; nothing when one can. */
  | { readonly name: 'why none ready' };

/** The text of an answer, or nothing. */
export type Answer = string | null;

/** What the two processes send each other beside what `node:cluster` sends. */
type Message<Question> =
  | { readonly kind: 'question'; readonly id: number; readonly question: Question }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answer }
  /** To a worker: not to be ready any more; to end as after a signal; or only once its open connections had time to end. */
  | { readonly kind: 'leave' | 'end' | 'retire' }
  /** From a worker: it takes requests. */
  | { readonly kind: 'started' }
  /** From a worker: what it had counted when it ended. */
  | { readonly kind: 'last figures'; readonly figures: MetricsText };

/** The messages that a worker gets, and those that it sends. */
export type ToWorker = Message<WorkerQuestion>;
export type ToPrimary = Message<PrimaryQuestion>;

/** How long a worker may take to answer, in milliseconds: it may be busy, but a scrape must not fail for it. */
export const workerAnswerMs = 2_000;

/**
 * How long the primary process may take, in milliseconds: longer than the workers that it asks, as one of them that hangs would
 * otherwise leave the others without an answer.
 */
export const primaryAnswerMs = 5_000;

/** Questions to the process at the other end of a channel, and their answers. */
interface Questions<Asked> {
  /** Resolves with the answer; with `undefined` when there is none in time, which `withinMs` milliseconds may prolong. */
  ask(question: Asked, withinMs?: number): Promise<Answer | undefined>;
  /** Takes the answer to a question. */
  answered(id: number, answer: Answer): void;
}

/** An answer may take `answerMs` milliseconds. `send` may fail, as when the other process has just ended: there is none then. */
export function createQuestions<Asked>(
  send: (message: Message<Asked>) => void,
  clock: Clock,
  answerMs: number,
): Questions<Asked> {
  const waiting = new Map<number, (answer: Answer | undefined) => void>();
  let lastId = 0;
  return {
    ask(question, withinMs = answerMs) {
      const id = ++lastId;
      const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
      const cancel = clock.schedule(withinMs, () => waiting.get(id)?.(undefined));
      waiting.set(id, (answer) => {
        waiting.delete(id);
        cancel();
        resolve(answer);
      });
      send({ kind: 'question', id, question });
      return promise;
    },
    answered: (id, answer) => waiting.get(id)?.(answer),
  };
}
