import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startCollector } from '../../support/otlp-collector.ts';
import { postgresPrograms, startPostgresServer } from '../../support/postgres-server.ts';
import { randomNumbers, seededNumbers } from '../../support/random-numbers.ts';
import { countOption, onOff, readScript, seedOption, textOption } from '../../support/script-options.ts';
import { databaseIn } from '../served-process.ts';
import { Asking, maxQuietMs } from './ask-again.ts';
import type { Asker } from './ask-again.ts';
import { readCharges, readSpent } from './charges.ts';
import { checkQuestions, checkSpent, describeReading, readLogs } from './checks.ts';
import { clientNames, loadClients, usualClients } from './clients.ts';
import { startCuttingProxy } from './cutting-proxy.ts';
import type { Cut } from './cutting-proxy.ts';
import { createDisturbances } from './disturbances.ts';
import { startGateways } from './gateways.ts';
import { dumpTables, findLeftovers } from './leftovers.ts';
import { costNanosOf, promptOf, startNumberedTexts, wordsOf } from './numbered-texts.ts';
import { Observations } from './observations.ts';
import { tableOfClients, tableOfDisturbances } from './report.ts';

/**
 * Questions whose connections are cut, one to three times each, behind any number of bytes, and whose clients ask again until
 * they have the answer: some libraries send a request again by themselves, and otherwise the application around them asks
 * once more. Each question must have called its upstream once, be charged once, and have its whole text; without a
 * name it is asked and paid as often as it is sent. Where gateways and their database are disturbed meanwhile, a question may be
 * asked again once it was lost, or be told that it was charged and is gone: never is it charged twice, or answered twice at a
 * time, and it comes to an end soon after its lease. Answers take longer then, so that every step of a claim is met.
 * No prompt and no answer may be in what the run leaves: databases, spools, logs, traces and temporary files.
 * `npm run chaos cuts -- --cuts 10000 --seed 1`, or with all clients
 * `npm run chaos cuts -- --clients raw,openai7,openai4,vercel,langchain --seed 1`
 */

const {
  cuts: wantedCuts,
  disturbances: wantedDisturbances,
  postgres,
  unnamed,
  clients: wantedClients,
  seed: given,
} = readScript({
  name: 'chaos cuts',
  options: {
    cuts: countOption('connections that are cut, at least, as many of each client', 1_000),
    clients: textOption(
      `those of ${clientNames.join(',')} that ask, without spaces: ${usualClients} if not given, and the others need what 'npm run test:outside' installs`,
    ),
    disturbances: countOption(
      'how often, meanwhile, a gateway is killed or stands still, or, with --postgres, the database is restarted, or a gateway is cut off from it, or from the other one',
      null,
    ),
    postgres: onOff('two gateways over a PostgreSQL server of its own, in place of one over a file'),
    unnamed: onOff('asks without an Idempotency-Key: what is paid then is shown, and no fault'),
    seed: seedOption(null),
  },
});
if (postgres && postgresPrograms === null) {
  process.stderr.write('skipped: there is no initdb in PATH or /usr/lib/postgresql/*/bin\n');
  process.exit(2);
}
const clients = await loadClients(wantedClients ?? usualClients).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(2);
});
// Signals end the gateways and servers of the run, too, as an exit does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** How many questions each client asks at a time. */
const atOnce = 16;
/** The most bytes of an answer that are passed on before a cut: more than any has. */
const mostBytes = 4_000;
/** How long an answer of the upstream takes at the most, where gateways are disturbed, in milliseconds. */
const maxAnswerMs = 5_000;
/** How many of the questions are asked by two clients at a time, where gateways are disturbed. */
const askedByTwo = 0.4;
/** How many disturbances follow each other, and how long the pause behind them is, in milliseconds: then all claims are free. */
const inARow = 15;
const pauseMs = maxQuietMs + 5_000;
const maxFaults = 20;

const { random, seed } = randomNumbers(given);
const below = (limit: number): number => Math.floor(random() * limit);
const isDisturbed = wantedDisturbances !== null;

/** A third of the answers come at once, a third soon, and a third take seconds; without disturbances they all come at once. */
function answerMs(question: number): number {
  asking.called(question);
  if (!isDisturbed) return question % 2 === 0 ? 12 : 0;
  const drawn = seededNumbers(seed + question)();
  return question % 3 === 0 ? 0 : drawn * (question % 3 === 1 ? maxAnswerMs / 10 : maxAnswerMs);
}

const words = wordsOf(seed);
const observations = new Observations();
const upstream = await startNumberedTexts({ words, observations, answerMs });
const collector = await startCollector();
const folder = mkdtempSync(join(tmpdir(), 'textgate-cuts-'));
const server = postgres ? await startPostgresServer() : null;
const gateways = await startGateways({
  folder,
  upstream,
  collectorUrl: collector.url,
  server,
  observations,
});
const [first] = gateways.all;
if (first === undefined) throw new Error('no gateway');
const proxy = await startCuttingProxy(() => gateways.all[below(gateways.all.length)] ?? first, observations);
const disturbances = createDisturbances({ gateways: gateways.all, server, observations, random });
const faults: string[] = [];
const asking = new Asking({
  url: `http://127.0.0.1:${proxy.port}`,
  isNamed: !unnamed,
  isDisturbed,
  isOnlyProcess: server === null,
  disturbances,
  observations,
  words,
  random,
  onFault: (fault) => void faults.push(fault),
});
const askers: readonly Asker[] = await Promise.all(
  [...clients].map(async ([name, ask]) => {
    const secret = await first.served.createKey(name, '1000000');
    return { name, ask, secret, questions: [], cuts: 0 };
  }),
);

const cutsOfEach = Math.ceil(wantedCuts / askers.length);
const hasFailed = (): boolean => faults.length >= maxFaults;
const areDisturbancesDone = (): boolean => disturbances.count >= (wantedDisturbances ?? 0);
const isOver = (): boolean =>
  hasFailed() || (areDisturbancesDone() && askers.every(({ cuts }) => cuts >= cutsOfEach));
let lastNumber = 0;

/** Asks by a client, and some questions by two at a time, until enough of its connections were cut. */
async function askOn(asker: Asker): Promise<void> {
  while (!hasFailed() && !(areDisturbancesDone() && asker.cuts >= cutsOfEach)) {
    const number = ++lastNumber;
    const cuts = Array.from({ length: 1 + below(3) }, (): Cut => ({
      bytes: below(mostBytes),
      how: random() < 0.5 ? 'fin' : 'rst',
    }));
    proxy.cutAnswers(number, cuts);
    asker.questions.push(number);
    const question = {
      number,
      prompt: promptOf(number, words),
      protocol: random() < 0.5 ? ('chat' as const) : ('responses' as const),
      stream: random() < 0.7,
    };
    const ofIt = isDisturbed && !unnamed && random() < askedByTwo ? [0, 1] : [0];
    observations.begin(number, ofIt.length);
    await Promise.all(
      ofIt.map((at) =>
        asking
          .askAgain(asker, { ...question, asker: at }, cuts.length)
          .finally(() => observations.end(number)),
      ),
    );
    asker.cuts += proxy.seen.get(number)?.cuts ?? 0;
  }
}

const allAsking = Promise.all(askers.flatMap((asker) => Array.from({ length: atOnce }, () => askOn(asker))));
while (!areDisturbancesDone() && !isOver()) {
  await disturbances.playOne();
  if (disturbances.count % inARow === 0) await wait(pauseMs);
}
await allAsking;

const spent = await readSpent(gateways.all);
const sum = (counted: readonly number[]): number => counted.reduce((total, count) => total + count, 0);
const results = askers.map(({ name, questions, cuts }) => {
  const spentNanos = spent.get(name) ?? Number.NaN;
  const costNanos = sum(questions.map((number) => costNanosOf(number, words)));
  return {
    name,
    questions: questions.length,
    cuts,
    tries: sum(questions.map((number) => proxy.seen.get(number)?.tries ?? 0)),
    calls: sum(questions.map((number) => upstream.calls.get(number) ?? 0)),
    charges: (spentNanos / costNanos) * questions.length,
  };
});
observations.write(join(folder, 'observations.json'));
let logs = null;
if (!unnamed) {
  const database = server ?? databaseIn(join(folder, 'gateway-0'));
  const charges = await readCharges(first.served, database, [...observations.ofQuestions.keys()]);
  faults.push(...checkSpent(askers, spent, charges));
  faults.push(
    ...checkQuestions({
      observations,
      charges,
      costOf: (question) => costNanosOf(question, words),
      isDisturbed,
    }),
  );
  logs = readLogs(observations, charges, server === null);
  faults.push(...logs.faults);
  if (!isDisturbed) {
    if (asking.told > 0 && !postgres)
      faults.push(`${asking.told} questions were told that their answer is gone`);
    for (const [question, times] of upstream.calls)
      if (times !== 1) faults.push(`question ${question} was asked ${times} times`);
  }
}
await proxy.close();

// SQLite's log has what the end of its process removes; PostgreSQL's files have all of it once the server has ended.
faults.push(...(await findLeftovers('while gateways run', folder, words)));
faults.push(...(await gateways.end()));
upstream.close();
await collector.close();
writeFileSync(join(folder, 'traces'), collector.bodies.join('\n'));
if (server !== null) {
  await dumpTables(server, join(folder, 'dump'));
  await server.stop();
  faults.push(...(await findLeftovers('PostgreSQL', server.folder, words)));
}
faults.push(...(await findLeftovers('afterwards', folder, words)));
await server?.remove();
if (faults.length === 0) rmSync(folder, { recursive: true });

const engine = postgres ? 'two gateways over PostgreSQL' : 'one gateway over SQLite';
const lines = [
  `seed ${seed}, ${engine}, ${unnamed ? 'without' : 'with'} an Idempotency-Key`,
  `${sum(results.map(({ cuts }) => cuts))} cuts, ${disturbances.count} disturbances`,
  `answered: ${asking.answered}; told that their answer is gone: ${asking.told}; the longest was asked for ${(asking.longestMs / 1_000).toFixed(1)} s`,
  ...tableOfClients(results),
  ...(isDisturbed ? tableOfDisturbances(disturbances.found) : []),
  ...(logs === null ? [] : [describeReading(logs, observations)]),
  ...faults.slice(0, maxFaults).map((fault) => `FAULT: ${fault}`),
  `${faults.length} faults`,
];
process.stdout.write(`${lines.join('\n')}\n`);
process.exit(faults.length === 0 ? 0 : 1);
