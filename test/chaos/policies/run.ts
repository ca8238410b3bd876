import { countOption, readScript, seedOption } from '../../support/script-options.ts';
import { playPolicies } from './play.ts';

/**
 * Plays random requests against upstreams whose behaviour changes at random, with random policies, limits and clients, through
 * the whole pipeline on a clock of its own: `npm run chaos policies -- --requests 10000 --seed 1`. Exits with 1 on a fault.
 */

/** How many faults are shown. */
const maxShown = 20;

const { requests, seed: given } = readScript({
  name: 'chaos policies',
  options: { requests: countOption('random requests', 10_000), seed: seedOption(null) },
});
const seed = given ?? Date.now() % 2 ** 31;
const startedMs = performance.now();
const { faults, figures } = await playPolicies(seed, requests);
const shown = Object.entries(figures).map(([name, figure]) => `  ${name}: ${figure}\n`);
const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0);
process.stdout.write(`seed ${seed}, ${seconds} s\n${shown.join('')}`);
for (const fault of faults.slice(0, maxShown)) process.stdout.write(`FAULT: ${fault}\n`);
process.stdout.write(`${faults.length} faults\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
