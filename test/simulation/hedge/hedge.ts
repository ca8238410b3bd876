import type { HedgePolicy } from '../../../src/domain/routing/hedging.ts';
import { countOption, readScript, seedOption } from '../../support/script-options.ts';
import { leastWithin } from './bound.ts';
import { play } from './play.ts';
import type { Played, Shape } from './play.ts';
import { longTail, stalls, together } from './shapes.ts';

/**
 * Plays a model with two routes with and without second requests. `npm run simulate hedge -- --requests 40000 --seed 1`
 * prints the times to the first text, and fails if they do not fall as the documentation says, or if more than the budget
 * is sent.
 */

/** How much the 99th percentile falls at least, where a call that is stuck says nothing of the next one. */
export const leastFall = 0.6;

/** The most further requests to upstreams, as a share. */
export const mostExtra = 0.05;

export const usualPolicy: HedgePolicy = { after: { kind: 'quantile', share: 0.95 }, budget: mostExtra };

/** The time in milliseconds within which a share of the first texts came. */
export function within({ firstTexts }: Played, share: number): number {
  return firstTexts[Math.ceil(firstTexts.length * share) - 1] ?? Number.NaN;
}

function write(name: string, played: Played): void {
  const times = [0.5, 0.95, 0.99].map((share) => `p${share * 100} ${Math.round(within(played, share))} ms`);
  const { won, lost, failed, refused } = played.hedges;
  process.stdout.write(
    `  ${name}: ${times.join(', ')}; ${(played.extra * 100).toFixed(2)} % more requests ` +
      `(${won} won, ${lost} lost, ${failed} failed, ${refused} refused by the budget)\n`,
  );
}

/** Prints the 99th percentile that no choice of the delay could undercut with this budget. */
function writeBound(shape: Shape, plainMs: number, seed: number): void {
  const leastMs = leastWithin(shape, mostExtra, 0.99, seed);
  process.stdout.write(
    `  the best delay, known beforehand: p99 ${Math.round(leastMs)} ms, ${((1 - leastMs / plainMs) * 100).toFixed(0)} % less\n`,
  );
}

async function main(): Promise<void> {
  const terms = readScript({
    name: 'simulate hedge',
    options: { requests: countOption('requests of each run', 40_000), seed: seedOption(1) },
  });
  const policies: readonly (readonly [string, HedgePolicy])[] = [
    ['after p95, budget 5 %', usualPolicy],
    ['after 1 s, budget 5 %', { ...usualPolicy, after: { kind: 'time', ms: 1_000 } }],
  ];
  const shapes: readonly Shape[] = [stalls, longTail, together];
  for (const shape of shapes) {
    process.stdout.write(`${shape.name}\n`);
    const plain = await play(shape, null, terms);
    write('no second requests', plain);
    // The times of this one depend on each other.
    if (shape !== together) writeBound(shape, within(plain, 0.99), terms.seed);
    for (const [name, policy] of policies) {
      const hedged = await play(shape, policy, terms);
      const fall = 1 - within(hedged, 0.99) / within(plain, 0.99);
      write(name, hedged);
      process.stdout.write(
        `    p99 ${fall < 0 ? 'rises' : 'falls'} by ${Math.abs(fall * 100).toFixed(0)} %\n`,
      );
      if (hedged.extra > mostExtra) throw new Error('more was sent than the budget allows');
      if (shape === stalls && fall < leastFall) throw new Error('the 99th percentile does not fall enough');
    }
  }
}

if (import.meta.main) await main();
