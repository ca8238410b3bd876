import { onTestFinished } from 'vitest';
import { sayTexts } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';

/** Has the upstream answer only when the function that is returned is called, or when the test ends. */
export function holdAnswers(upstream: ScriptedUpstream): () => void {
  const told = Promise.withResolvers<void>();
  const answer = (): void => told.resolve();
  const say = sayTexts(['Hello', ' there']);
  upstream.play(async (response, request) => {
    await told.promise;
    await say(response, request);
  });
  onTestFinished(answer);
  return answer;
}
