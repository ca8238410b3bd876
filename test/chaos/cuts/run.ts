import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseUsd } from '../../../src/shared/money.ts';
import { startCollector } from '../../support/otlp-collector.ts';
import { postgresPrograms, startPostgresServer } from '../../support/postgres-server.ts';
import { randomNumbers } from '../../support/random-numbers.ts';
import { countOption, onOff, readScript, seedOption, textOption } from '../../support/script-options.ts';
import { RefusedError } from './ask.ts';
import type { AskBy, Question } from './ask.ts';
import { clientNames, loadClients, usualClients } from './clients.ts';
import { startCuttingProxy } from './cutting-proxy.ts';
import type { Cut } from './cutting-proxy.ts';
import { filesWithWords } from './find-words.ts';
import { startGateways } from './gateways.ts';
import { costNanosOf, promptOf, startNumberedTexts, textsOf, wordsOf } from './numbered-texts.ts';

/**
 * Questions whose connections are cut, one to three times each, behind any number of bytes, and whose clients ask again until
 * they have the answer: some libraries send a request again by themselves, and otherwise the application around them asks
 * once more. Each question must have called its upstream once, be charged once, and have its whole text; without a
 * name it is asked and paid as often as it is sent. Where gateways are killed meanwhile, a question may be asked again
 * once it was lost, or be told that it was charged and is gone: never is it charged twice, or answered twice at a time.
 * No prompt and no answer may be in what the run leaves: databases, spools, logs, traces and temporary files.
 * `npm run chaos cuts -- --cuts 10000 --seed 1`, or with all clients
 * `npm run chaos cuts -- --clients raw,openai7,openai4,vercel,langchain --seed 1`
 */

const {
  cuts: wantedCuts,
  kills: wantedKills,
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
    kills: countOption('how often a gateway is killed meanwhile, at least', null),
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
/** For how long a question is asked again, in milliseconds: a lease lasts 15 seconds. */
const maxAskingMs = 60_000;
/** The most bytes of an answer that are passed on before a cut: more than any has. */
const mostBytes = 4_000;
/** The longest time between two kills, in milliseconds. */
const mostBetweenKillsMs = 3_000;
const maxFaults = 20;

const { random, seed } = randomNumbers(given);
const below = (limit: number): number => Math.floor(random() * limit);

const words = wordsOf(seed);
const upstream = await startNumberedTexts(words);
const collector = await startCollector();
const folder = mkdtempSync(join(tmpdir(), 'textgate-cuts-'));
const server = postgres ? await startPostgresServer() : null;
const gateways = await startGateways({
  folder,
  upstreamUrl: upstream.url,
  collectorUrl: collector.url,
  databaseUrl: server?.url() ?? null,
});
const proxy = await startCuttingProxy(() => gateways.ports[below(gateways.ports.length)] ?? 0);
const faults: string[] = [];
const counts = { answered: 0, told: 0, kills: 0 };

/** A client, which has a key of its own, and what has become of its questions. */
interface Asker {
  readonly name: string;
  readonly ask: AskBy;
  readonly secret: string;
  readonly questions: number[];
  cuts: number;
}

const askers: readonly Asker[] = await Promise.all(
  [...clients].map(async ([name, ask]) => {
    const secret = await gateways.first.createKey(name, '1000000');
    return { name, ask, secret, questions: [], cuts: 0 };
  }),
);

/** Asks a question until its client has all of the answer, or was told that it is gone. */
async function askAgain(asker: Asker, question: Question): Promise<void> {
  const { number } = question;
  const cuts = Array.from({ length: 1 + below(3) }, (): Cut => ({
    bytes: below(mostBytes),
    how: random() < 0.5 ? 'fin' : 'rst',
  }));
  proxy.cutAnswers(number, cuts);
  asker.questions.push(number);
  const asked = { url: `http://127.0.0.1:${proxy.port}`, secret: asker.secret, isNamed: !unnamed };
  const name = `question ${number} (${asker.name}, ${question.protocol}, ${question.stream ? 'streamed' : 'whole'})`;
  const untilMs = performance.now() + maxAskingMs;
  let last = '';
  for (let tries = 1; performance.now() < untilMs; tries++) {
    try {
      const text = await asker.ask(question, asked);
      counts.answered++;
      if (text !== textsOf(number, words).join('')) faults.push(`${name}: has another text: ${text}`);
      return;
    } catch (error) {
      if (error instanceof RefusedError && error.code === 'replay_unavailable') return void counts.told++;
      last = String(error);
      // At once, as libraries do, or a little later, as people do; what is away for longer is waited for.
      if (tries > cuts.length) await wait(200);
      else if (random() < 0.5) await wait(below(30));
    }
  }
  faults.push(`${name}: has no answer, and the last one was ${last}`);
}

const cutsOfEach = Math.ceil(wantedCuts / askers.length);
const hasFailed = (): boolean => faults.length >= maxFaults;
const areKillsDone = (): boolean => counts.kills >= (wantedKills ?? 0);
const isOver = (): boolean =>
  hasFailed() || (areKillsDone() && askers.every(({ cuts }) => cuts >= cutsOfEach));
let lastNumber = 0;

/** Asks by a client until enough of its connections were cut. */
async function askOn(asker: Asker): Promise<void> {
  while (!hasFailed() && !(areKillsDone() && asker.cuts >= cutsOfEach)) {
    const number = ++lastNumber;
    await askAgain(asker, {
      number,
      prompt: promptOf(number, words),
      protocol: random() < 0.5 ? 'chat' : 'responses',
      stream: random() < 0.7,
    });
    asker.cuts += proxy.seen.get(number)?.cuts ?? 0;
  }
}

const asking = Promise.all(askers.flatMap((asker) => Array.from({ length: atOnce }, () => askOn(asker))));
while (!areKillsDone() && !isOver()) {
  await wait(below(mostBetweenKillsMs));
  await gateways.kill(below(gateways.ports.length));
  counts.kills++;
}
await asking;

/** What each key has spent, in nano-USD, once nothing runs any more. */
async function spentByKey(): Promise<ReadonlyMap<string, number>> {
  for (;;) {
    const { data: running } = (await gateways.first.ask('GET', '/in-flight')) as { data: unknown[] };
    if (running.length === 0) break;
    await wait(100);
  }
  const { data } = (await gateways.first.ask('GET', '/keys')) as { data: { name: string; spent: string }[] };
  return new Map(data.map(({ name, spent }) => [name, parseUsd(spent) ?? Number.NaN]));
}

const spent = await spentByKey();
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
    spentNanos,
    costNanos,
    charges: (spentNanos / costNanos) * questions.length,
  };
});
if (!unnamed) {
  for (const { name, questions, spentNanos, costNanos } of results)
    if (spentNanos !== costNanos)
      faults.push(
        `${name}: ${questions} questions cost ${costNanos} nano-USD, and ${spentNanos} are charged`,
      );
  for (const question of upstream.doubled) faults.push(`question ${question} was answered twice at a time`);
  if (wantedKills === null) {
    if (counts.told > 0 && !postgres)
      faults.push(`${counts.told} questions were told that their answer is gone`);
    for (const [question, times] of upstream.calls)
      if (times !== 1) faults.push(`question ${question} was asked ${times} times`);
  }
}
await proxy.close();
/** Searches a folder for texts; what is found is named without them. */
async function searchFor(place: string, searched: string): Promise<void> {
  for (const [kind, word] of Object.entries(words))
    for (const file of await filesWithWords(searched, [word]))
      faults.push(`${place}: the text of a${kind === 'answer' ? 'n' : ''} ${kind} is in ${file}`);
}

// SQLite's log has what the end of its process removes; PostgreSQL's files have all of it once the server has ended.
await searchFor('while gateways run', folder);
faults.push(...(await gateways.end()));
upstream.close();
await collector.close();
writeFileSync(join(folder, 'traces'), collector.bodies.join('\n'));
if (server !== null) {
  // Long values are compressed in its files.
  const tables = await server.sql(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  mkdirSync(join(folder, 'dump'));
  for (const { name } of tables) {
    const rows = await server.sql(`SELECT t::text AS row FROM ${String(name)} t`);
    writeFileSync(join(folder, 'dump', String(name)), rows.map(({ row: text }) => String(text)).join('\n'));
  }
  await server.stop();
  await searchFor('PostgreSQL', server.folder);
}
await searchFor('afterwards', folder);
await server?.remove();
if (faults.length === 0) rmSync(folder, { recursive: true });

const columns = ['questions', 'cuts', 'tries', 'calls a question', 'charges a question'] as const;
const nameWidth = Math.max(...clientNames.map((name) => name.length));
const row = (name: string, cells: readonly string[]): string =>
  [name.padEnd(nameWidth), ...cells.map((cell, at) => cell.padStart(columns[at]?.length ?? 0))].join('  ');
const table = results.map(({ name, questions, cuts, tries, calls, charges }) =>
  row(name, [
    ...[questions, cuts, tries].map(String),
    ...[calls, charges].map((count) => (count / questions).toFixed(3)),
  ]),
);
const engine = postgres ? 'two gateways over PostgreSQL' : 'one gateway over SQLite';
const lines = [
  `seed ${seed}, ${engine}, ${unnamed ? 'without' : 'with'} an Idempotency-Key`,
  `${sum(results.map(({ cuts }) => cuts))} cuts, ${counts.kills} kills`,
  `answered: ${counts.answered}; told that their answer is gone: ${counts.told}`,
  row('', columns),
  ...table,
  ...faults.slice(0, maxFaults).map((fault) => `FAULT: ${fault}`),
  `${faults.length} faults`,
];
process.stdout.write(`${lines.join('\n')}\n`);
process.exit(faults.length === 0 ? 0 : 1);
