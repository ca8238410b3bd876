import type { Clock } from '../../domain/ports/clock.ts';
import type { Answer, Message } from './messages.ts';

/** How long a worker may take to answer, in milliseconds: it may be busy, but a scrape must not fail for it. */
export const workerAnswerMs = 2_000;

/**
 * How long the primary process may take, in milliseconds: longer than the workers that it asks, as one of them that hangs would
 * otherwise leave the others without an answer.
 */
export const primaryAnswerMs = 5_000;

/** Questions to the process at the other end of a channel, and their answers. */
export interface Questions<Asked> {
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
