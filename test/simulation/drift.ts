import { UsageDrift, leastReferenceSamples, recentSamples } from '../../src/second-meter/usage-drift.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { normal } from './distributions.ts';

/**
 * Plays the reports of an upstream against counts of the same texts, and looks for the alarm as the alert
 * TextgateUsageDrift does. `npm run simulate drift -- --runs 1000 --seed 1` prints each scenario's rate of alarms.
 */

/** How large a change is an alarm. */
const alarmChange = 0.05;

/** How many samples lie between two looks. */
const samplesPerLook = 5;

/** One way in which the ratio of reported and counted tokens behaves. */
export interface Scenario {
  readonly name: string;
  /** The ratio of a sample, around 1 and before any change. */
  readonly ratio: (random: () => number) => number;
  /** How many times as much is reported from `changeAt` on; 1 for no change. */
  readonly change: number;
}

/** Where an upstream changes its reports, in samples. */
export const changeAt = 1_000;

/** The length of a run, in samples. */
const samples = 3_000;

const spread = (deviation: number) => (random: () => number) => Math.exp(deviation * normal(random));

/** A tokenizer that counts half of the texts otherwise than the other half, such as those in another language. */
const twoLanguages = (random: () => number): number =>
  (random() < 0.5 ? 1 : 1.6) * Math.exp(0.04 * normal(random));

/** Short texts, to which the upstream adds a prompt of its own. */
const addedPrompt = (random: () => number): number => {
  const counted = 64 + Math.floor(2_000 * random() ** 3);
  return (counted * 1.1 + 40) / counted;
};

/** One sample in ten is off by far, as after a search of the provider. */
const outliers = (random: () => number): number =>
  random() < 0.1 ? 1 + 20 * random() : Math.exp(0.05 * normal(random));

export const constant: readonly Scenario[] = [
  { name: 'scatter of 3 %', ratio: spread(0.03), change: 1 },
  { name: 'scatter of 10 %', ratio: spread(0.1), change: 1 },
  { name: 'scatter of 30 %', ratio: spread(0.3), change: 1 },
  { name: 'two languages', ratio: twoLanguages, change: 1 },
  { name: 'an added prompt', ratio: addedPrompt, change: 1 },
  { name: 'outliers', ratio: outliers, change: 1 },
];

export const changing: readonly Scenario[] = [
  { name: '10 % more, scatter of 3 %', ratio: spread(0.03), change: 1.1 },
  { name: '10 % more, scatter of 10 %', ratio: spread(0.1), change: 1.1 },
  { name: '10 % less, scatter of 3 %', ratio: spread(0.03), change: 0.9 },
  { name: '10 % more, outliers', ratio: outliers, change: 1.1 },
];

/** Plays a scenario once; returns after which sample the first alarm came, or `null`. */
export function firstAlarm({ ratio, change }: Scenario, seed: number): number | null {
  const random = seededNumbers(seed);
  const drift = new UsageDrift();
  const usual = 0.5 + 2 * random();
  for (let sample = 1; sample <= samples; sample++) {
    const counted = 10_000;
    const reported = counted * usual * ratio(random) * (sample > changeAt ? change : 1);
    drift.add('far', 'large', 'output', reported, counted);
    if (sample % samplesPerLook !== 0 || sample < recentSamples + leastReferenceSamples) continue;
    const found = drift.figures()[0]?.drift ?? null;
    if (found === null) throw new Error('there are no figures');
    const distance = Math.abs(found.ratio - 1);
    if (distance > alarmChange && distance > found.uncertainty) return sample;
  }
  return null;
}

function main(): void {
  const { runs, seed } = readScript({
    name: 'simulate drift',
    options: { runs: countOption('runs of each scenario', 1_000), seed: seedOption(1) },
  });
  for (const scenario of [...constant, ...changing]) {
    const alarms = Array.from({ length: runs }, (_, run) => firstAlarm(scenario, seed + run));
    const early = alarms.filter((at) => at !== null && at <= (scenario.change === 1 ? samples : changeAt));
    const delays = alarms
      .flatMap((at) => (at === null || at <= changeAt || scenario.change === 1 ? [] : [at - changeAt]))
      .toSorted((one, other) => one - other);
    const found =
      scenario.change === 1
        ? ''
        : `, found in ${delays.length} after ${delays[delays.length >> 1]} samples (median), at most ${delays.at(-1)}`;
    process.stdout.write(
      `${scenario.name}: ${early.length} false alarms in ${runs} runs of ${samples} samples${found}\n`,
    );
  }
}

if (import.meta.main) main();
