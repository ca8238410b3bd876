import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseUsd } from '../../../src/shared/money.ts';
import { postgresPrograms, startPostgresServer } from '../../support/postgres-server.ts';
import { randomNumbers } from '../../support/random-numbers.ts';
import { countOption, onOff, readScript, seedOption } from '../../support/script-options.ts';
import { ask, RefusedError } from './ask.ts';
import type { Question } from './ask.ts';
import { startCuttingProxy } from './cutting-proxy.ts';
import { startGateways } from './gateways.ts';
import { startNumberedTexts, textsOf } from './numbered-texts.ts';

/**
 * Questions whose connections are cut, one to three times each, behind any number of bytes, and whose clients ask again until
 * they have the answer. Each question must have called its upstream once, be charged once, and have its whole text; without a
 * name it is asked and paid as often as it is sent. Where gateways are killed meanwhile, a question may be asked again
 * once it was lost, or be told that it was charged and is gone: never is it charged twice, or answered twice at a time.
 * `npm run chaos cuts -- --cuts 10000 --seed 1`
 */

const {
  cuts: wantedCuts,
  kills: wantedKills,
  postgres,
  unnamed,
  seed: given,
} = readScript({
  name: 'chaos cuts',
  options: {
    cuts: countOption('connections that are cut, at least', 1_000),
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
// Signals end the gateways and servers of the run, too, as an exit does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/** How many questions are asked at a time. */
const atOnce = 16;
/** For how long a question is asked again, in milliseconds: a lease lasts 15 seconds. */
const maxAskingMs = 60_000;
/** The most bytes of an answer that are passed on before a cut: more than any has. */
const mostBytes = 4_000;
/** What a question costs, in nano-USD. */
const costNanos = 11 * 1_000 + 7 * 2_000;
/** The longest time between two kills, in milliseconds. */
const mostBetweenKillsMs = 3_000;
const maxFaults = 20;

const { random, seed } = randomNumbers(given);
const below = (limit: number): number => Math.floor(random() * limit);

const upstream = await startNumberedTexts();
const folder = mkdtempSync(join(tmpdir(), 'textgate-cuts-'));
const server = postgres ? await startPostgresServer() : null;
const gateways = await startGateways({
  folder,
  upstreamUrl: upstream.url,
  databaseUrl: server?.url() ?? null,
});
const proxy = await startCuttingProxy(() => gateways.ports[below(gateways.ports.length)] ?? 0);
const secret = await gateways.first.createKey('asker', '1000000');
const asked = { url: `http://127.0.0.1:${proxy.port}`, secret, isNamed: !unnamed };
const faults: string[] = [];
const counts = { answered: 0, told: 0, sent: 0, kills: 0 };

/** Asks a question until its client has all of the answer, or was told that it is gone. */
async function askAgain(question: Question): Promise<void> {
  const { number } = question;
  const cutsOfIt = 1 + below(3);
  const untilMs = performance.now() + maxAskingMs;
  let last = '';
  for (let tries = 1; performance.now() < untilMs; tries++) {
    if (tries <= cutsOfIt) proxy.cutNext(number, below(mostBytes), random() < 0.5 ? 'fin' : 'rst');
    counts.sent++;
    try {
      const text = await ask(question, asked);
      counts.answered++;
      if (text !== textsOf(number).join('')) faults.push(`${describe(question)}: has another text: ${text}`);
      return;
    } catch (error) {
      if (error instanceof RefusedError && error.code === 'replay_unavailable') return void counts.told++;
      last = String(error);
      // At once, as libraries do, or a little later, as people do; what is away for longer is waited for.
      if (tries > cutsOfIt) await wait(200);
      else if (random() < 0.5) await wait(below(30));
    }
  }
  faults.push(`${describe(question)}: has no answer, and the last one was ${last}`);
}

function describe({ number, client, protocol, stream }: Question): string {
  return `question ${number} (${client}, ${protocol}, ${stream ? 'streamed' : 'whole'})`;
}

const isOver = (): boolean =>
  faults.length >= maxFaults || (proxy.cuts >= wantedCuts && counts.kills >= (wantedKills ?? 0));
let lastNumber = 0;
const asking = Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (!isOver())
      await askAgain({
        number: ++lastNumber,
        client: random() < 0.8 ? 'raw' : 'openai',
        protocol: random() < 0.5 ? 'chat' : 'responses',
        stream: random() < 0.7,
      });
  }),
);
while (counts.kills < (wantedKills ?? 0) && !isOver()) {
  await wait(below(mostBetweenKillsMs));
  await gateways.kill(below(gateways.ports.length));
  counts.kills++;
}
await asking;

/** What the key has spent, in nano-USD, once nothing runs any more. */
async function spentNanos(): Promise<number> {
  for (;;) {
    const { data: running } = (await gateways.first.ask('GET', '/in-flight')) as { data: unknown[] };
    if (running.length === 0) break;
    await wait(100);
  }
  const { data } = (await gateways.first.ask('GET', '/keys')) as { data: { name: string; spent: string }[] };
  return parseUsd(data.find(({ name }) => name === 'asker')?.spent ?? '') ?? Number.NaN;
}

const charges = (await spentNanos()) / costNanos;
const called = [...upstream.calls.values()].reduce((sum, times) => sum + times, 0);
const questions = counts.answered + counts.told;
if (!unnamed) {
  if (charges !== questions) faults.push(`${charges} charges for ${questions} questions`);
  for (const question of upstream.doubled) faults.push(`question ${question} was answered twice at a time`);
  if (wantedKills === null) {
    if (counts.told > 0 && !postgres)
      faults.push(`${counts.told} questions were told that their answer is gone`);
    for (const [question, times] of upstream.calls)
      if (times !== 1) faults.push(`question ${question} was asked ${times} times`);
  }
}
await proxy.close();
faults.push(...(await gateways.end()));
upstream.close();
await server?.remove();
if (faults.length === 0) rmSync(folder, { recursive: true });

const perQuestion = (count: number): string => `${(count / questions).toFixed(3)} a question`;
const engine = postgres ? 'two gateways over PostgreSQL' : 'one gateway over SQLite';
const lines = [
  `seed ${seed}, ${engine}, ${unnamed ? 'without' : 'with'} an Idempotency-Key`,
  `${proxy.cuts} cuts, ${counts.kills} kills, ${questions} questions, sent ${counts.sent} times`,
  `answered: ${counts.answered}; told that their answer is gone: ${counts.told}`,
  `calls of the upstream: ${called}, ${perQuestion(called)}`,
  `charges: ${charges.toFixed(2)}, ${perQuestion(charges)}`,
  ...faults.slice(0, maxFaults).map((fault) => `FAULT: ${fault}`),
  `${faults.length} faults`,
];
process.stdout.write(`${lines.join('\n')}\n`);
process.exit(faults.length === 0 ? 0 : 1);
