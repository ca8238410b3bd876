import { clientsOf, playAnnounced } from './announced.ts';
import { playConfigured } from './configured.ts';
import { arrivals, mean, playFairness } from './fairness.ts';
import type { Arrival, FairnessResult, Policy } from './fairness.ts';
import { learnedCases, playLearned, sharedCases, silentCases } from './learned.ts';

/** What the nine may wait in relation to ten equal keys, and the least use of permits while some wait. */
const mostWaitRatio = 1.3;
const leastUtilisation = 0.98;

/** How much of a learned limit is used at least, and how many calls are refused at most. */
const leastUsed = 0.95;
const mostRefused = 0.01;

/** How many calls are refused at most where others use half of the account. */
const mostRefusedBesideOthers = 0.06;

/** How far announced waits are off at most where times are even: the median, with one permit and with four. */
const mostAnnouncedErrors = { 1: 0.16, 4: 0.24 } as const;

/** The same where times are exponential, in relation to waits by their true mean, which says all that can be known. */
const mostBesideKnown = 1.1;

/** Figures, and what is wrong with them: empty if nothing is. */
export interface Report {
  readonly lines: readonly string[];
  readonly faults: readonly string[];
}

/** Means of the runs of one way of arriving, with one policy. */
export type FairnessMeans = Pick<
  FairnessResult,
  'greedyMs' | 'othersMs' | 'utilisation' | 'usedEarly' | 'refusedGreedy' | 'refusedOthers' | 'overtaken'
>;

/** The means of some runs, with or without a greedy key. */
export async function meansOf(
  seed: number,
  runs: number,
  arrival: Arrival,
  policy: Policy,
  greedy: 'greedy' | null = 'greedy',
): Promise<FairnessMeans> {
  const results: FairnessResult[] = [];
  for (let run = 0; run < runs; run++) results.push(await playFairness(seed + run, arrival, policy, greedy));
  const meanOf = (pick: (result: FairnessResult) => number): number =>
    mean(results.map(pick).filter((value) => !Number.isNaN(value)));
  return {
    greedyMs: meanOf(({ greedyMs }) => greedyMs),
    othersMs: meanOf(({ othersMs }) => othersMs),
    utilisation: meanOf(({ utilisation }) => utilisation),
    usedEarly: meanOf(({ usedEarly }) => usedEarly),
    refusedGreedy: meanOf(({ refusedGreedy }) => refusedGreedy),
    refusedOthers: meanOf(({ refusedOthers }) => refusedOthers),
    overtaken: meanOf(({ overtaken }) => overtaken),
  };
}

/** What each way of arriving means, for the reader of the figures. */
const arrivalWords: Readonly<Record<Arrival, string>> = {
  full: 'all at one instant, in any order, while the upstream is busy',
  'greedy first': 'all at one instant, the greedy key first, while the upstream is busy',
  empty: 'all at one instant, in any order, to an idle upstream',
  spread: 'the nine at any moment while the greedy key has a queue',
  closed: 'the nine ask again after each answer, the greedy key always has 100',
};

/** One greedy key with a hundred requests, and nine with one each, before an upstream that takes four. */
export async function reportFairness(seed: number, runs: number): Promise<Report> {
  const lines: string[] = [];
  const faults: string[] = [];
  for (const arrival of arrivals) {
    const equal = await meansOf(seed, runs, arrival, 'fair', null);
    const fair = await meansOf(seed, runs, arrival, 'fair');
    const age = await meansOf(seed, runs, arrival, 'age');
    const ratio = fair.othersMs / equal.othersMs;
    lines.push(
      `${arrivalWords[arrival]}: the nine wait ${seconds(fair.othersMs)} (${ratio.toFixed(2)} x ten equal keys, by age ${seconds(age.othersMs)}), ` +
        `the greedy key ${seconds(fair.greedyMs)} (by age ${seconds(age.greedyMs)}), permits used ${percent(fair.utilisation)}`,
    );
    // What an idle upstream has begun cannot be taken back: the first four requests, most of the greedy key.
    if (arrival !== 'empty' && ratio > mostWaitRatio) faults.push(`${arrival}: ${ratio.toFixed(2)} x`);
    for (const { utilisation, overtaken } of [fair, age]) {
      if (utilisation < leastUtilisation) faults.push(`${arrival}: ${percent(utilisation)} of the permits`);
      if (overtaken > 0) faults.push(`${arrival}: ${overtaken} requests of a key overtaken`);
    }
  }
  return { lines, faults };
}

/** An upstream of 60 requests and 6,000 tokens a minute, of which the gateway learns from answers only. */
export async function reportLearned(seed: number, runs: number, minutes: number): Promise<Report> {
  const lines: string[] = [];
  const faults: string[] = [];
  for (const played of [...learnedCases, ...sharedCases, ...silentCases]) {
    const { kind, family, tokenCount, binding, others = false } = played;
    const isSilent = silentCases.includes(played);
    const results = [];
    for (let run = 0; run < runs; run++) results.push(await playLearned(seed + run, played, minutes));
    const used = mean(results.map((result) => result.used));
    const refused = mean(results.map((result) => result.refused));
    const name = `${kind}, headers: ${family}, tokens counted ${tokenCount}, ${binding} bind${others ? ', others use half' : ''}`;
    lines.push(
      `${name}: ${percent(used)} used, ${percent(refused)} refused${isSilent ? ' (no promise)' : ''}`,
    );
    if (!isSilent && used < leastUsed) faults.push(`${name}: ${percent(used)} used`);
    if (!isSilent && refused > (others ? mostRefusedBesideOthers : mostRefused))
      faults.push(`${name}: ${percent(refused)} refused`);
  }
  return { lines, faults };
}

/** Random requests for three upstreams with configured limits, by the upstreams' own count. */
export async function reportConfigured(seed: number, requests: number): Promise<Report> {
  const { answered, exceeded, most } = await playConfigured(seed, requests);
  const faults = [...exceeded];
  if (answered < 0.5 * requests) faults.push(`only ${answered} of ${requests} requests were answered`);
  const found = Object.entries(most).map(([what, value]) => `${what}: ${value}`);
  return { lines: [`${answered} of ${requests} answered; most in any 60 s: ${found.join('; ')}`], faults };
}

/** Clients before an upstream with one permit, and with four. */
export async function reportAnnounced(seed: number, hours: number): Promise<Report> {
  const lines: string[] = [];
  const faults: string[] = [];
  for (const permits of [1, 4] as const) {
    const even = await playAnnounced(seed, 'even', permits, hours);
    const tail = await playAnnounced(seed, 'tail', permits, hours);
    const name = `${permits === 1 ? 'one permit' : `${permits} permits`}, ${clientsOf[permits]} clients`;
    lines.push(
      `${name}, answers of 1 to 5 s: announced waits are off by ${percent(even.announced)} (median)`,
      `${name}, exponential answers: by ${percent(tail.announced)}, with their mean known by ${percent(tail.known)}`,
    );
    if (even.announced > mostAnnouncedErrors[permits])
      faults.push(`${name}: off by ${percent(even.announced)}`);
    if (tail.announced > mostBesideKnown * tail.known)
      faults.push(`${name}, exponential: off by ${percent(tail.announced)}`);
  }
  return { lines, faults };
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
