import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { seededNumbers, randomNumbers } from '../../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../../support/script-options.ts';
import { residentMib } from '../resident-memory.ts';
import { servedModel, serveConfig } from '../served-process.ts';
import type { ServedProcess } from '../served-process.ts';
import { askSized } from './clients.ts';
import type { SizedQuestion } from './clients.ts';
import { answerTo, startSizedTexts } from './sized-texts.ts';

/**
 * Answers to requests with an `Idempotency-Key`, of all sizes up to more than is kept of one, and clients that join them: they
 * wait for each other in the middle of what they read, and then read slowly. The memory of the gateway exceeds that of the same
 * load without the header by no more than what is kept, and is back at it once nothing is kept any more; the gauge of kept
 * bytes never exceeds its limit; and no client takes a part of an answer, or another one, for the whole.
 * `npm run chaos kept-answers -- --seed 1`
 */

const {
  answers,
  joiners,
  seed: given,
} = readScript({
  name: 'chaos kept-answers',
  options: {
    answers: countOption('answers that are asked for', 10_000),
    joiners: countOption('clients that join them and read slowly', 1_000),
    seed: seedOption(null),
  },
});
// Signals end the gateway of the run, too, as an exit does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** The limit of `running-claims.ts` for all answers that are kept, in bytes and MiB. */
const maxKeptBytes = 67_108_864;
const maxKeptMib = maxKeptBytes / 1_048_576;
const keptGauge = 'textgate_kept_answer_bytes';
/** By how much memory may differ otherwise, in MiB. */
const toleranceMib = 20;

/** How long an answer is kept after its end. */
const replay = { setting: '20s', ms: 20_000 };
/** How long a gateway rests before its memory is compared, in milliseconds. */
const restMs = 3_000;
/** How often the gauge is read and memory is measured, the latter some time after garbage was collected, in milliseconds. */
const gaugeMs = 250;
const sampleMs = 2_000;
const collectingMs = 300;
const atOnce = 32;
/** Has glibc give back what is freed: how much of it stays with a process otherwise depends on the order in which that was. */
const mallocSettings = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '65536',
  MALLOC_TRIM_THRESHOLD_: '65536',
};
const keyCount = 200;
/** Questions that a gateway is asked first, without the header: code is compiled, and memory taken that is not given back. */
const warmUps = 300;

/** Questions without the header that it is asked at the end, and how often: memory that was freed goes back as it is used. */
const coolDowns = 500;
const coolDownRounds = 4;

/** The shortest answer that is joined, in UTF-16 code units: one that has some to read slowly. */
const fewestJoinedChars = 8_000;
/** Joiners come in this part of the load, so that many of them read at a time. */
const joinedFrom = 0.2;
const joinedUntil = 0.5;
/** The longest time for which one reads slowly, in milliseconds, and its slowest and fastest pace, in bytes a second. */
const longestSlowMs = 20_000;
const [slowest, fastest] = [5_000, 100_000];
/** The pause before a client comes again that was told that too many join, in milliseconds, and how often it does. */
const crowdedMs = 500;
const maxCrowded = 40;
const maxFaults = 20;

const { seed } = randomNumbers(given);
const folder = mkdtempSync(join(tmpdir(), 'textgate-kept-answers-'));
const faults: string[] = [];

/** The memory of a gateway that rests, in MiB. */
interface Rested {
  readonly withPages: number;
  readonly used: number;
}

/** What was measured of one load: memory in MiB. */
interface Measured {
  readonly before: number;
  /** At most, and at most where garbage was collected just before: how much of it waits is up to V8. */
  readonly peakWithGarbage: number;
  readonly peak: number;
  /** At the end, with the pages that V8 keeps for what comes next, and without. */
  readonly afterWithPages: number;
  readonly after: number;
  readonly peakKeptBytes: number;
  readonly keptBytesAfter: number;
  readonly seconds: number;
  /** The most joiners at a time, and what has become of all of them. */
  readonly peakJoiners: number;
  readonly joined: ReadonlyMap<string, number>;
}

/** A gauge of a gateway. */
async function gaugeOf({ adminUrl }: ServedProcess, name: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

/** Plays the load on a gateway of its own. */
async function play(isNamed: boolean): Promise<Measured> {
  const name = isNamed ? 'with' : 'without';
  const upstream = await startSizedTexts();
  const place = join(folder, name);
  mkdirSync(place);
  const served = await serveConfig({
    folder: place,
    imports: [join(import.meta.dirname, '..', 'garbage-collector.ts')],
    environment: mallocSettings,
    nodeOptions: ['--expose-gc', '--max-semi-space-size=8'],
    config: {
      server: { port: 0 },
      limits: { concurrency: 1_000, requestsPerMinute: 10_000_000 },
      resume: { replay: replay.setting },
      ...servedModel(upstream.url),
    },
  });
  const secrets: string[] = [];
  for (let at = 0; at < keyCount; at++) secrets.push(await served.createKey(`key-${at}`, '1000000'));
  const random = seededNumbers(seed);
  const questionOf = (number: number, named: boolean): SizedQuestion => ({
    number,
    protocol: number % 2 === 0 ? 'chat' : 'responses',
    stream: number % 10 < 7,
    secret: secrets[number % keyCount] ?? '',
    isNamed: named,
  });

  async function askAll(from: number, count: number, one: (number: number) => Promise<void>): Promise<void> {
    let next = from;
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (next < from + count && faults.length < maxFaults) await one(next++);
      }),
    );
  }

  async function askWhole(number: number, named: boolean): Promise<void> {
    const outcome = await askSized(served.url, questionOf(number, named), null);
    if (outcome !== 'complete') faults.push(`${name} the header, answer ${number}: ${outcome}`);
  }

  /** Collects garbage, and measures the memory a little later: with the pages that V8 keeps for what comes next, and without. */
  async function rested(): Promise<Rested> {
    const measured: number[] = [];
    for (const signal of ['SIGUSR2', 'SIGPWR'] as const) {
      for (let times = 0; times < 2; times++) {
        served.child.kill(signal);
        await wait(restMs);
      }
      measured.push(residentMib(served.child.pid));
    }
    const [withPages = Number.NaN, used = Number.NaN] = measured;
    return { withPages, used };
  }

  // Numbers that the load does not have.
  await askAll(answers, warmUps, (number) => askWhole(number, false));
  const { used: before } = await rested();

  const joining = new Set<Promise<void>>();
  const joined = new Map<string, number>();
  /** Resolves when all joiners read, or are told that they can't. */
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
  let joinersLeft = joiners;
  let peakJoiners = 0;
  /** A client that reads slowly: it joins the answer of another one, or has one of its own without the header. */
  async function joinSlowly(number: number): Promise<void> {
    const pace = {
      goesOn,
      bytesPerSecond: slowest * (fastest / slowest) ** random(),
      forMs: longestSlowMs * random(),
    };
    let outcome = await askSized(served.url, questionOf(number, isNamed), pace);
    for (let times = 0; outcome === 'crowded' && times < maxCrowded; times++) {
      await wait(crowdedMs);
      outcome = await askSized(served.url, questionOf(number, isNamed), pace);
    }
    joined.set(outcome, (joined.get(outcome) ?? 0) + 1);
    const isExpected = outcome === 'complete' || (isNamed && ['cut', 'gone'].includes(outcome));
    if (!isExpected) faults.push(`${name} the header, a joiner of answer ${number}: ${outcome}`);
  }
  function startJoiner(number: number): void {
    if (joinersLeft === 0) return;
    joinersLeft--;
    const one = joinSlowly(number).finally(() => joining.delete(one));
    joining.add(one);
    peakJoiners = Math.max(peakJoiners, joining.size);
    if (joinersLeft === 0) goOn();
  }

  let [peak, peakWithGarbage, peakKeptBytes] = [before, before, 0];
  const ending = new AbortController();
  const { signal } = ending;
  async function readGauge(): Promise<void> {
    for (; !signal.aborted; await wait(gaugeMs)) {
      peakWithGarbage = Math.max(peakWithGarbage, residentMib(served.child.pid));
      peakKeptBytes = Math.max(peakKeptBytes, await gaugeOf(served, keptGauge));
    }
  }
  async function measureMemory(): Promise<void> {
    for (; !signal.aborted; await wait(sampleMs)) {
      served.child.kill('SIGUSR2');
      await wait(collectingMs);
      peak = Math.max(peak, residentMib(served.child.pid));
    }
  }
  const sampling = Promise.all([readGauge(), measureMemory()]);
  const startedMs = performance.now();
  await askAll(0, answers, async (number) => {
    const isJoined =
      number >= joinedFrom * answers &&
      answerTo(number).text.length >= fewestJoinedChars &&
      (number < joinedUntil * answers || joinersLeft > 0);
    const chances = isJoined ? [random(), random(), random()].filter((chance) => chance < 0.6) : [];
    // Some while it runs, and some once it has ended.
    const asking = askWhole(number, isNamed);
    for (const chance of chances) if (chance < 0.3) startJoiner(number);
    await asking;
    for (const chance of chances) if (chance >= 0.3) startJoiner(number);
  });
  goOn();
  await Promise.all(joining);
  const seconds = (performance.now() - startedMs) / 1_000;
  ending.abort();
  await sampling;
  await wait(replay.ms);
  let after = await rested();
  for (let round = 0; round < coolDownRounds; round++) {
    const from = answers + warmUps + round * coolDowns;
    await askAll(from, coolDowns, (number) => askWhole(number, false));
    const { withPages, used } = await rested();
    after = { withPages: Math.min(after.withPages, withPages), used: Math.min(after.used, used) };
  }
  const keptBytesAfter = await gaugeOf(served, keptGauge);
  if (isNamed)
    for (const [number, times] of upstream.calls)
      if (times !== 1) faults.push(`answer ${number} was asked for ${times} times`);
  const code = await served.end();
  if (code !== 0) faults.push(`the gateway ended with ${code}`);
  upstream.close();
  return {
    before,
    peak,
    peakWithGarbage,
    afterWithPages: after.withPages,
    after: after.used,
    peakKeptBytes,
    keptBytesAfter,
    seconds,
    peakJoiners,
    joined,
  };
}

const without = await play(false);
const named = await play(true);
if (named.peak > without.peak + maxKeptMib + toleranceMib)
  faults.push('at its peak, the header takes more memory than what may be kept');
if (named.after > without.after + toleranceMib) faults.push('memory is not given back');
if (named.peakJoiners < joiners) faults.push(`no more than ${named.peakJoiners} slow clients at a time`);
if (named.peakKeptBytes > maxKeptBytes) faults.push(`${named.peakKeptBytes} bytes were kept`);
if (named.peakKeptBytes === 0) faults.push('nothing was kept');
if (named.keptBytesAfter !== 0) faults.push(`${named.keptBytesAfter} bytes are kept at the end`);
if (faults.length === 0) rmSync(folder, { recursive: true });

const mib = (value: number): string => `${value.toFixed(0)} MiB`;
const describe = (
  header: string,
  { before, peak, peakWithGarbage, afterWithPages, after, seconds, peakJoiners, joined }: Measured,
): string =>
  `${header} the header: ${mib(before)} before, at most ${mib(peak)} (${mib(peakWithGarbage)} with garbage), ${mib(after)} afterwards (${mib(afterWithPages)} with the empty pages of V8); ${seconds.toFixed(0)} s; ` +
  `at most ${peakJoiners} slow clients at a time (${[...joined].map((entry) => entry.join(' ')).join(', ')})`;
const lines = [
  `${answers} answers, ${joiners} slow clients, seed ${seed}`,
  describe('without', without),
  describe('with', named),
  `kept: at most ${mib(named.peakKeptBytes / 1_048_576)}, and ${named.keptBytesAfter} bytes at the end`,
  ...faults.slice(0, maxFaults).map((fault) => `FAULT: ${fault}`),
  `${faults.length} faults`,
];
process.stdout.write(`${lines.join('\n')}\n`);
process.exit(faults.length === 0 ? 0 : 1);
