import { beforeEach, expect } from 'vitest';
import { sayTexts } from './scripted-upstream.ts';
import { openStage } from './stage.ts';

/** The turns of the conversation that every SDK holds. */
export const talk = {
  system: 'Be terse.',
  questions: ['What is the capital of France?', 'And of Spain?'],
  answers: ['It is Paris, “la Ville Lumière” 🌃.', 'Madrid.'],
} as const;

/** A gateway in front of an upstream that gives the answers of the conversation in turn. */
export interface Stage {
  readonly baseURL: string;
  /** The first turn is that of a key whose answers show their charge wherever they can, the second one that of any key. */
  readonly apiKey: string;
  /** Asserts that the upstream received the whole history in the second turn. */
  expectWholeHistory(): void;
}

/** Starts gateway and upstream for the tests of one SDK. */
export async function setStage(): Promise<Stage> {
  const { upstream, gateway } = await openStage({ price: { input: '1', output: '2' } });
  const shown = { usageCost: true, chargeComment: true };
  const { secret: showing } = await gateway.gateway.createKey('showing', { compatibility: shown });
  beforeEach(() => {
    upstream.seen.length = 0;
    upstream.play((response, request) => {
      const answer = talk.answers[upstream.seen.length - 1] ?? 'one turn too many';
      return sayTexts(answer.split(/(?<= )/))(response, request);
    });
  });
  return {
    baseURL: `${gateway.url}/v1`,
    get apiKey() {
      return upstream.seen.length === 0 ? showing : gateway.key;
    },
    expectWholeHistory() {
      const bodies = upstream.seen.map(({ body }) => JSON.parse(body) as { messages: unknown });
      expect(bodies).toHaveLength(2);
      expect(bodies[1]?.messages).toEqual([
        { role: 'system', content: talk.system },
        { role: 'user', content: talk.questions[0] },
        { role: 'assistant', content: talk.answers[0] },
        { role: 'user', content: talk.questions[1] },
      ]);
    },
  };
}
