import { countOption, readScript, seedOption } from '../../support/script-options.ts';
import { playConversations } from './conversations.ts';
import { playFirstTexts } from './first-texts.ts';

/**
 * `npm run simulate routing -- --seed 1 --runs 5` plays workloads against the policies of routes in virtual time, and prints
 * what each of them reads from caches, and how long its requests wait for their first text.
 */

const { runs, seed: first } = readScript({
  name: 'simulate routing',
  options: { runs: countOption('runs, each with the next seed', 5), seed: seedOption(1) },
});
const seeds = Array.from({ length: runs }, (_, run) => first + run);
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

for (const seed of seeds) {
  const plan = { seed, replicas: 4, conversations: 4_000, perSecond: 2, cacheTokens: 150_000 };
  print(`conversations, seed ${seed}:`);
  const oracle = await playConversations(plan, 'oracle');
  for (const chooser of ['oracle', 'affinity', 'least_in_flight', 'order'] as const) {
    const { requests, cachedShare, overBound, loadRatio } =
      chooser === 'oracle' ? oracle : await playConversations(plan, chooser);
    const bound =
      overBound === 0 ? 'always within 1.25 x the mean' : `up to ${overBound.toFixed(2)} x the mean`;
    print(
      `  ${chooser.padEnd(16)} ${requests} requests, ${percent(cachedShare)} of the input from caches ` +
        `(${percent(cachedShare / oracle.cachedShare)} of the oracle's), in flight ${bound}, ` +
        `busiest replica ${loadRatio.toFixed(2)} x the mean of the tokens`,
    );
  }
}
for (const seed of seeds) {
  const plan = { seed, requests: 50_000, perSecond: 10 };
  print(`first texts, seed ${seed}:`);
  for (const policy of ['order', 'random', 'least_in_flight', 'fastest'] as const) {
    const { p50, p99 } = await playFirstTexts(plan, policy);
    print(`  ${policy.padEnd(16)} p50 ${p50} ms, p99 ${p99} ms`);
  }
}
