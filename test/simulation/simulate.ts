import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { addCounts, describeCounts, noCounts } from './counts.ts';
import { runHistory } from './run-history.ts';
import type { HistoryResult } from './run-history.ts';

/**
 * Runs histories of several gateways over one database on virtual time, and stops at the first that breaks a rule.
 * `npm run simulate -- --histories 100000 --seed 1`; `--history SEED` runs one of them again, and prints what happened.
 */

/** How often progress is printed, in milliseconds. */
const progressMs = 10_000;

const options = readScript({
  name: 'simulate nodes',
  options: {
    histories: countOption('histories, each with the next seed', 1_000),
    seed: seedOption(null),
    history: { ...seedOption(null), help: 'the seed of the one history that is repeated, and printed' },
  },
});
process.exitCode = options.history === null ? await runAll() : await repeatOne(options.history);

async function runAll(): Promise<number> {
  const { histories } = options;
  const seed = options.seed ?? Date.now() % 2 ** 31;
  print(`${histories} histories from seed ${seed}`);
  const counts = noCounts();
  const startedMs = performance.now();
  let printedMs = startedMs;
  for (let number = 0; number < histories; number++) {
    const result = await runHistory(seed + number);
    if (result.violation !== null) {
      print(`violation in history ${number + 1}, seed ${result.seed}: ${result.violation.message}`);
      return repeatOne(result.seed);
    }
    addCounts(counts, result.counts);
    if (performance.now() - printedMs > progressMs) {
      printedMs = performance.now();
      print(`${number + 1} histories, ${rate(number + 1, startedMs)} per second`);
    }
  }
  print(describeCounts(counts));
  print(`${histories} histories from seed ${seed}, ${rate(histories, startedMs)} per second, 0 violations`);
  return 0;
}

/** Runs one history and prints it; returns the exit code. */
async function repeatOne(seed: number): Promise<number> {
  const { log, counts, violation }: HistoryResult = await runHistory(seed, true);
  print(log.join('\n'));
  print(describeCounts(counts));
  print(violation === null ? 'no violation' : String(violation.stack));
  return violation === null ? 0 : 1;
}

function rate(histories: number, startedMs: number): number {
  return Math.round((histories * 1_000) / (performance.now() - startedMs));
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
