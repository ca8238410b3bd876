import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { countOption, onOff, readScript, seedOption } from '../../support/script-options.ts';
import { drawPolicies } from './draw.ts';
import type { Policy } from './fairness.ts';
import { meansOf, reportAnnounced, reportConfigured, reportFairness, reportLearned } from './report.ts';
import type { FairnessMeans, Report } from './report.ts';

/**
 * Plays requests that share upstreams, in virtual time, and holds the figures against their bounds: `npm run simulate limits --
 * --seed 1 --runs 200`. Exits with 1 if one is broken. `--pictures` writes the picture of the documentation.
 */

const { seed, runs, pictures } = readScript({
  name: 'simulate limits',
  options: {
    runs: countOption('runs of fairness', 200),
    seed: seedOption(1),
    pictures: onOff('draws the picture of the documentation'),
  },
});

const parts: readonly (readonly [string, () => Promise<Report>])[] = [
  [
    `a greedy key with 100 requests and nine keys with one each, 4 permits, ${runs} runs`,
    () => reportFairness(seed, runs),
  ],
  [
    '60 requests and 6,000 tokens a minute, learned from answers, 10 minutes',
    () => reportLearned(seed, 5, 10),
  ],
  ['configured limits, 10,000 random requests, up to 1 s of jitter', () => reportConfigured(seed, 10_000)],
  ['announced waits, an hour', () => reportAnnounced(seed, 1)],
];
let broken = 0;
for (const [title, report] of parts) {
  const { lines, faults } = await report();
  broken += faults.length;
  process.stdout.write(`${title} (seed ${seed}):\n${lines.map((line) => `  ${line}\n`).join('')}`);
  for (const fault of faults) process.stdout.write(`  BROKEN: ${fault}\n`);
}
if (pictures) await drawAll();
process.stdout.write(`${broken} bounds broken\n`);
process.exitCode = broken === 0 ? 0 : 1;

async function drawAll(): Promise<void> {
  const means = new Map<Policy, FairnessMeans>();
  for (const policy of ['fair', 'age', 'none'] as const)
    means.set(policy, await meansOf(seed, runs, 'spread', policy));
  const path = join(import.meta.dirname, '..', '..', '..', 'docs', 'images', 'upstream-limits-policies.svg');
  writeFileSync(path, drawPolicies(means));
}
